//! Settings from everywhere: flags, `COHABIT_*` variables and configuration files, in this order.
//!
//! What was written is kept as text with its origin; it is checked once, when a command asks for it, and a
//! wrong value is reported with the place where it stands. Unknown keys of a file are errors that name the
//! nearest.

mod file;
mod key;

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
#[cfg(feature = "fuzzing")]
pub(crate) use file::parse;
pub(crate) use key::Key;

/// Settings by key, as written, of one origin.
pub(crate) type Written = BTreeMap<Key, String>;

/// All settings; what was said nearer to the command wins.
#[derive(Debug)]
pub(crate) struct Settings {
    layers: Vec<(Origin, Written)>,
}

/// Where a setting was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// On the command line.
    Flag,
    /// In a `COHABIT_*` variable.
    Environment,
    /// In this file.
    File(PathBuf),
}

/// A setting with its origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) key: Key,
    pub(crate) text: &'a str,
    pub(crate) origin: &'a Origin,
}

impl Settings {
    /// These flags before all that the environment and the usual files say.
    pub(crate) fn with_flags(flags: Written) -> Result<Settings, Failure> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Settings::layered(flags, variable, &usual_files())
    }

    /// These flags and nothing else.
    #[cfg(feature = "demo")]
    pub(crate) fn of_flags(flags: Written) -> Settings {
        Settings { layers: vec![(Origin::Flag, flags)] }
    }

    fn layered(
        flags: Written,
        variable: impl Fn(&str) -> Option<String>,
        files: &[PathBuf],
    ) -> Result<Settings, Failure> {
        let from_environment = Key::ALL.into_iter().filter_map(|key| Some((key, variable(&key.variable())?)));
        let mut layers = vec![(Origin::Flag, flags), (Origin::Environment, from_environment.collect())];
        for path in files {
            if let Some(written) = file::read(path)? {
                layers.push((Origin::File(path.clone()), written));
            }
        }
        Ok(Settings { layers })
    }

    /// The nearest setting of a key.
    pub(crate) fn find(&self, key: Key) -> Option<Setting<'_>> {
        self.first_of(&[key])
    }

    /// The nearest setting of any of these keys; of two in the same place, the one that comes first here.
    pub(crate) fn first_of(&self, keys: &[Key]) -> Option<Setting<'_>> {
        self.layers.iter().find_map(|(origin, written)| {
            keys.iter().find_map(|&key| Some(Setting { key, text: written.get(&key)?, origin }))
        })
    }

    /// The nearest setting of a key, checked.
    #[cfg(any(test, feature = "daemon"))]
    pub(crate) fn checked<T, E: std::fmt::Display>(
        &self,
        key: Key,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Failure> {
        self.find(key).map(|setting| setting.check(read)).transpose()
    }

    /// The nearest setting of a key that names a file or folder.
    pub(crate) fn path(&self, key: Key) -> Option<PathBuf> {
        self.find(key).map(|setting| setting.path())
    }
}

impl Setting<'_> {
    /// Reads the text; a wrong one is reported with its place.
    #[cfg(any(test, feature = "daemon"))]
    pub(crate) fn check<T, E: std::fmt::Display>(
        &self,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Failure> {
        read(self.text).map_err(|error| {
            let message = format!("{}: {error}", self.place());
            match self.origin {
                Origin::Flag => Failure::new(crate::failure::Trouble::Usage, message),
                Origin::Environment | Origin::File(_) => Failure::configuration(message),
            }
        })
    }

    /// As a path; one in a file is relative to the file's folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join(self.text)
    }

    /// Where paths in it begin: for one in a file, the file's folder.
    pub(crate) fn folder(&self) -> &Path {
        match self.origin {
            Origin::Flag | Origin::Environment => Path::new(""),
            Origin::File(file) => file.parent().unwrap_or(Path::new("")),
        }
    }

    /// Where it stands, for people.
    #[cfg(any(test, feature = "daemon"))]
    fn place(&self) -> String {
        match self.origin {
            Origin::Flag => format!("--{}", self.key.name()),
            Origin::Environment => self.key.variable(),
            Origin::File(file) => format!("{} in {}", self.key.name(), file.display()),
        }
    }
}

/// The nearest first.
fn usual_files() -> Vec<PathBuf> {
    let user = env::var_os("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".config")));
    [
        Some(PathBuf::from("cohabit.toml")),
        user.map(|folder| folder.join("cohabit/config.toml")),
        Some(PathBuf::from("/etc/cohabit/config.toml")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
