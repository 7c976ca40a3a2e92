//! All settings of a program, in the order of their sources.
//!
//! Values are kept as text with their source and checked once, when a program needs them. The error of a
//! wrong value names its flag, variable, or file and line. An unknown key in a file is an error that suggests
//! the closest key.

use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::file::{self, FileSettings, NearFile};
use crate::{RawSettings, SettingKey, SettingsError, SettingsErrorKind};

/// All settings. The first source that has a key wins.
#[derive(Debug)]
pub struct Settings {
    layers: Vec<SettingsLayer>,
    warnings: Vec<String>,
}

/// The settings of one source.
#[derive(Debug)]
struct SettingsLayer {
    source: SettingSource,
    /// The text of each setting, and its line in a file.
    written: BTreeMap<SettingKey, (Option<usize>, String)>,
}

impl SettingsLayer {
    fn new(source: SettingSource, written: impl IntoIterator<Item = (SettingKey, String)>) -> SettingsLayer {
        let written = written.into_iter().map(|(key, text)| (key, (None, text))).collect();
        SettingsLayer { source, written }
    }

    fn of_file(path: &Path, written: FileSettings) -> SettingsLayer {
        let written = written.into_iter().map(|(key, (line, text))| (key, (Some(line), text))).collect();
        SettingsLayer { source: SettingSource::File(path.to_owned()), written }
    }
}

/// The source of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    /// On the command line.
    Flag,
    /// In a `COHABIT_*` environment variable.
    Environment,
    /// In this file.
    File(PathBuf),
}

/// A setting with its source.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Which setting.
    pub key: SettingKey,
    /// Its value, as written.
    pub text: &'a str,
    /// Where it is written.
    pub origin: &'a SettingSource,
    /// Its line there, from 1, if that is a file.
    pub line: Option<usize>,
}

impl Settings {
    /// These flags, then the environment, then the configuration files: `./cohabit.toml`,
    /// `~/.config/cohabit/config.toml` (or in `XDG_CONFIG_HOME`) and `/etc/cohabit/config.toml`.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, or has an unknown key: with its path and line. A variable that
    /// is no text.
    pub fn with_flags(flags: RawSettings) -> Result<Settings, SettingsError> {
        for name in SettingKey::ALL.iter().map(|key| key.variable()) {
            if matches!(env::var(&name), Err(VarError::NotUnicode(_))) {
                return Err(SettingsError::configuration(format!(
                    "{name} is not valid UTF-8: set it to text that is"
                )));
            }
        }
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Settings::layered(flags, variable, Path::new("cohabit.toml"), &config_paths())
    }

    /// These flags only.
    #[must_use]
    pub fn of_flags(flags: RawSettings) -> Settings {
        Settings { layers: vec![SettingsLayer::new(SettingSource::Flag, flags)], warnings: Vec::new() }
    }

    /// What the user should know: each a sentence, without `warning:`.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn layered(
        flags: RawSettings,
        variable: impl Fn(&str) -> Option<String>,
        near: &Path,
        files: &[PathBuf],
    ) -> Result<Settings, SettingsError> {
        let from_environment =
            SettingKey::ALL.iter().filter_map(|key| Some((*key, variable(&key.variable())?)));
        let mut settings = Settings::of_flags(flags);
        settings.layers.push(SettingsLayer::new(SettingSource::Environment, from_environment));
        match file::read_near(near)? {
            NearFile::Missing => {}
            NearFile::Foreign(uid) => settings.warnings.push(format!(
                "ignored ./{}, which belongs to another user (uid {uid}): copy it to use it",
                near.display()
            )),
            NearFile::Settings(written) => settings.layers.push(SettingsLayer::of_file(near, written)),
        }
        for path in files {
            settings.layers.extend(file::read(path)?.map(|written| SettingsLayer::of_file(path, written)));
        }
        Ok(settings)
    }

    /// The setting of a key from the first source that has it.
    #[must_use]
    pub fn find(&self, key: SettingKey) -> Option<Setting<'_>> {
        self.first_of(&[key])
    }

    /// The setting of any of these keys from the first source that has one; within a source, the first of
    /// `keys` wins.
    #[must_use]
    pub fn first_of(&self, keys: &[SettingKey]) -> Option<Setting<'_>> {
        self.layers.iter().find_map(|SettingsLayer { source, written }| {
            keys.iter().find_map(|&key| {
                let (line, text) = written.get(&key)?;
                Some(Setting { key, text, origin: source, line: *line })
            })
        })
    }

    /// The setting of a key, parsed with `read`.
    ///
    /// # Errors
    /// What `read` says, with the source of the setting.
    pub fn checked<T, E: Display>(
        &self,
        key: SettingKey,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SettingsError> {
        self.find(key).map(|setting| setting.check(read)).transpose()
    }

    /// The setting of a key that is a path.
    #[must_use]
    pub fn path(&self, key: SettingKey) -> Option<PathBuf> {
        self.find(key).map(|setting| setting.path())
    }
}

impl Setting<'_> {
    /// Parses the text.
    ///
    /// # Errors
    /// What `read` says, with the source of the setting.
    pub fn check<T, E: Display>(&self, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T, SettingsError> {
        read(self.text).map_err(|error| {
            let kind = match self.origin {
                SettingSource::Flag => SettingsErrorKind::Flag,
                SettingSource::Environment | SettingSource::File(_) => SettingsErrorKind::Configuration,
            };
            SettingsError { kind, message: format!("{}: {error}", self.place()) }
        })
    }

    /// The value as a path; in a file, paths are relative to the directory of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder().join(self.text)
    }

    /// The directory that a relative path in this setting starts from.
    #[must_use]
    pub fn folder(&self) -> &Path {
        match self.origin {
            SettingSource::Flag | SettingSource::Environment => Path::new(""),
            SettingSource::File(file) => file.parent().unwrap_or(Path::new("")),
        }
    }

    /// The source, as messages name it.
    #[must_use]
    pub fn place(&self) -> String {
        match self.origin {
            SettingSource::Flag => format!("--{}", self.key.name()),
            SettingSource::Environment => self.key.variable(),
            SettingSource::File(file) => {
                let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
                format!("{} in {}{line}", self.key.name(), file.display())
            }
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
