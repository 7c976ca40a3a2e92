//! Settings from flags, `COHABIT_*` environment variables and configuration files, in this order.
//!
//! Values are kept as text with their source and checked once, when a command needs them. The error of a
//! wrong value names its flag, variable or file. An unknown key in a file is an error that suggests the
//! closest key.

mod file;
mod key;

use std::env;
use std::path::{Path, PathBuf};

use cohabit_console::CommandError;

#[cfg(feature = "fuzzing")]
pub(crate) use file::parse;
pub(crate) use key::{RawSettings, SettingKey};

/// All settings. The first source that has a key wins.
#[derive(Debug)]
pub(crate) struct Settings {
    layers: Vec<(SettingSource, RawSettings)>,
}

/// The source of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingSource {
    /// On the command line.
    Flag,
    /// In a `COHABIT_*` environment variable.
    Environment,
    /// In this file.
    File(PathBuf),
}

/// A setting with its source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) key: SettingKey,
    pub(crate) text: &'a str,
    pub(crate) origin: &'a SettingSource,
}

impl Settings {
    /// These flags, then the environment, then the configuration files.
    pub(crate) fn with_flags(flags: RawSettings) -> Result<Settings, CommandError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Settings::layered(flags, variable, Path::new("cohabit.toml"), &config_paths())
    }

    /// These flags only.
    #[cfg(feature = "demo")]
    pub(crate) fn of_flags(flags: RawSettings) -> Settings {
        Settings { layers: vec![(SettingSource::Flag, flags)] }
    }

    fn layered(
        flags: RawSettings,
        variable: impl Fn(&str) -> Option<String>,
        near: &Path,
        files: &[PathBuf],
    ) -> Result<Settings, CommandError> {
        let from_environment =
            SettingKey::ALL.iter().filter_map(|key| Some((*key, variable(&key.variable())?)));
        let mut layers =
            vec![(SettingSource::Flag, flags), (SettingSource::Environment, from_environment.collect())];
        let mut add = |path: &Path, written: Option<RawSettings>| {
            layers.extend(written.map(|written| (SettingSource::File(path.to_owned()), written)));
        };
        add(near, file::read_near(near)?);
        for path in files {
            add(path, file::read(path)?);
        }
        Ok(Settings { layers })
    }

    /// The setting of a key from the first source that has it.
    pub(crate) fn find(&self, key: SettingKey) -> Option<Setting<'_>> {
        self.first_of(&[key])
    }

    /// The setting of any of these keys from the first source that has one; within a source, the first of
    /// `keys` wins.
    pub(crate) fn first_of(&self, keys: &[SettingKey]) -> Option<Setting<'_>> {
        self.layers.iter().find_map(|(origin, written)| {
            keys.iter().find_map(|&key| Some(Setting { key, text: written.get(&key)?, origin }))
        })
    }

    /// The setting of a key, parsed with `read`.
    #[cfg(any(test, feature = "daemon"))]
    pub(crate) fn checked<T, E: std::fmt::Display>(
        &self,
        key: SettingKey,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, CommandError> {
        self.find(key).map(|setting| setting.check(read)).transpose()
    }

    /// The setting of a key that is a path.
    pub(crate) fn path(&self, key: SettingKey) -> Option<PathBuf> {
        self.find(key).map(|setting| setting.path())
    }
}

impl Setting<'_> {
    /// Parses the text; the error names the source.
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

    /// The value as a path; in a file, paths are relative to the directory of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join(self.text)
    }

    /// The directory that a relative path in this setting starts from.
    pub(crate) fn folder(&self) -> &Path {
        match self.origin {
            SettingSource::Flag | SettingSource::Environment => Path::new(""),
            SettingSource::File(file) => file.parent().unwrap_or(Path::new("")),
        }
    }

    /// The source, as messages name it.
    pub(crate) fn place(&self) -> String {
        match self.origin {
            SettingSource::Flag => format!("--{}", self.key.name()),
            SettingSource::Environment => self.key.variable(),
            SettingSource::File(file) => format!("{} in {}", self.key.name(), file.display()),
        }
    }
}

/// The configuration files behind the one in the present directory, in the order in which they apply.
fn config_paths() -> Vec<PathBuf> {
    let user = env::var_os("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".config")));
    [user.map(|folder| folder.join("cohabit/config.toml")), Some(PathBuf::from("/etc/cohabit/config.toml"))]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests;
