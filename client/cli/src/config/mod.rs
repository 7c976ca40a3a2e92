//! Settings from everywhere: flags, `COHABIT_*` variables and configuration files, in this order.
//!
//! What was written is kept as text with its origin; it is checked once, when a command asks for it, and a
//! wrong value is reported with the place where it stands. Unknown keys of a file are errors that name the
//! nearest.

mod file;
mod key;

use std::env;
use std::path::{Path, PathBuf};

use cohabit_console::CommandError;

#[cfg(feature = "fuzzing")]
pub(crate) use file::parse;
pub(crate) use key::{RawSettings, SettingKey};

/// All settings; what was said nearer to the command wins.
#[derive(Debug)]
pub(crate) struct Settings {
    layers: Vec<(SettingSource, RawSettings)>,
}

/// Where a setting was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingSource {
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
    pub(crate) key: SettingKey,
    pub(crate) text: &'a str,
    pub(crate) origin: &'a SettingSource,
}

impl Settings {
    /// These flags before all that the environment and the usual files say.
    pub(crate) fn with_flags(flags: RawSettings) -> Result<Settings, CommandError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Settings::layered(flags, variable, &config_paths())
    }

    /// These flags and nothing else.
    #[cfg(feature = "demo")]
    pub(crate) fn of_flags(flags: RawSettings) -> Settings {
        Settings { layers: vec![(SettingSource::Flag, flags)] }
    }

    fn layered(
        flags: RawSettings,
        variable: impl Fn(&str) -> Option<String>,
        files: &[PathBuf],
    ) -> Result<Settings, CommandError> {
        let from_environment =
            SettingKey::ALL.into_iter().filter_map(|key| Some((key, variable(&key.variable())?)));
        let mut layers =
            vec![(SettingSource::Flag, flags), (SettingSource::Environment, from_environment.collect())];
        for path in files {
            if let Some(written) = file::read(path)? {
                layers.push((SettingSource::File(path.clone()), written));
            }
        }
        Ok(Settings { layers })
    }

    /// The nearest setting of a key.
    pub(crate) fn find(&self, key: SettingKey) -> Option<Setting<'_>> {
        self.first_of(&[key])
    }

    /// The nearest setting of any of these keys; of two in the same place, the one that comes first here.
    pub(crate) fn first_of(&self, keys: &[SettingKey]) -> Option<Setting<'_>> {
        self.layers.iter().find_map(|(origin, written)| {
            keys.iter().find_map(|&key| Some(Setting { key, text: written.get(&key)?, origin }))
        })
    }

    /// The nearest setting of a key, checked.
    #[cfg(any(test, feature = "daemon"))]
    pub(crate) fn checked<T, E: std::fmt::Display>(
        &self,
        key: SettingKey,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, CommandError> {
        self.find(key).map(|setting| setting.check(read)).transpose()
    }

    /// The nearest setting of a key that names a file or folder.
    pub(crate) fn path(&self, key: SettingKey) -> Option<PathBuf> {
        self.find(key).map(|setting| setting.path())
    }
}

impl Setting<'_> {
    /// Reads the text; a wrong one is reported with its place.
    #[cfg(any(test, feature = "daemon"))]
    pub(crate) fn check<T, E: std::fmt::Display>(
        &self,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, CommandError> {
        read(self.text).map_err(|error| {
            let message = format!("{}: {error}", self.place());
            match self.origin {
                SettingSource::Flag => CommandError::new(cohabit_console::CommandErrorKind::Usage, message),
                SettingSource::Environment | SettingSource::File(_) => CommandError::configuration(message),
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
            SettingSource::Flag | SettingSource::Environment => Path::new(""),
            SettingSource::File(file) => file.parent().unwrap_or(Path::new("")),
        }
    }

    /// Where it stands, for people.
    #[cfg(any(test, feature = "daemon"))]
    fn place(&self) -> String {
        match self.origin {
            SettingSource::Flag => format!("--{}", self.key.name()),
            SettingSource::Environment => self.key.variable(),
            SettingSource::File(file) => format!("{} in {}", self.key.name(), file.display()),
        }
    }
}

/// The nearest first.
fn config_paths() -> Vec<PathBuf> {
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
