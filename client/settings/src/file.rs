//! Reads one configuration file: flat TOML with known keys and plain values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::geteuid;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{SettingKey, SettingsError, closest_name};

/// The settings of a file, with their lines.
pub(crate) type FileSettings = BTreeMap<SettingKey, (usize, String)>;

/// What a file of the present directory holds.
pub(crate) enum NearFile {
    /// It does not exist.
    Missing,
    /// It belongs to another user, with this user id.
    Foreign(u32),
    Settings(FileSettings),
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<FileSettings>, SettingsError> {
    match File::open(path).and_then(|mut file| text_of(&mut file)) {
        Ok(text) => parsed(path, &text).map(Some),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The same for a file in the present directory, if it belongs to this user or to root. Another user may have
/// put it there for all who work in that directory, and settings can name a library or another head.
pub(crate) fn read_near(path: &Path) -> Result<NearFile, SettingsError> {
    match trusted_text(path) {
        Ok(Ok(text)) => parsed(path, &text).map(NearFile::Settings),
        Ok(Err(uid)) => Ok(NearFile::Foreign(uid)),
        Err(error) if is_missing(&error) => Ok(NearFile::Missing),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The text of a file, or the other user to whom it, or the link to it, belongs. What another user put there
/// is not opened: a pipe would block.
fn trusted_text(path: &Path) -> io::Result<Result<String, u32>> {
    let owner = path.symlink_metadata()?.uid();
    if !is_trusted(owner) {
        return Ok(Err(owner));
    }
    let mut file = File::open(path)?;
    match file.metadata()?.uid() {
        owner if is_trusted(owner) => text_of(&mut file).map(Ok),
        owner => Ok(Err(owner)),
    }
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

fn text_of(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: &io::Error) -> SettingsError {
    SettingsError::configuration(format!("cannot read the configuration file {}: {error}", path.display()))
}

fn parsed(path: &Path, text: &str) -> Result<FileSettings, SettingsError> {
    parse_settings(text).map_err(|(line, message)| {
        SettingsError::configuration(format!("{}:{line}: {message}", path.display()))
    })
}

/// Parses the text of a file: each setting with its line, from 1.
///
/// # Errors
/// The line of the first error, and what is wrong there.
pub fn parse_settings(text: &str) -> Result<BTreeMap<SettingKey, (usize, String)>, (usize, String)> {
    let line = |offset: usize| text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
    let table = DeTable::parse(text)
        .map_err(|error| (line(error.span().map_or(0, |span| span.start)), error.message().to_owned()))?;
    let table = table.into_inner();
    let written = table.iter().map(|(name, value)| match setting(name, value) {
        Ok((key, text)) => Ok((key, (line(name.span().start), text))),
        Err((offset, message)) => Err((line(offset), message)),
    });
    written.collect()
}

fn setting(
    name: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(SettingKey, String), (usize, String)> {
    let key =
        SettingKey::by_name(name.get_ref()).ok_or_else(|| (name.span().start, unknown(name.get_ref())))?;
    let text = plain(value.get_ref())
        .ok_or_else(|| (value.span().start, format!("{} takes a string or a number", key.name())))?;
    Ok((key, text))
}

fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    SettingKey::ALL.iter().map(|key| key.name())
}

fn unknown(name: &str) -> String {
    match closest_name(name, known()) {
        Some(nearest) => format!("there is no setting '{name}'; did you mean '{nearest}'?"),
        None => format!(
            "there is no setting '{name}'; the settings are {}",
            known().collect::<Vec<_>>().join(", ")
        ),
    }
}
