//! Reads one configuration file: flat TOML with known keys and plain values.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cohabit_console::output::print_message;
use cohabit_console::{CommandError, line_of};
use nix::unistd::geteuid;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{RawSettings, SettingKey};
use cohabit_console::closest_name;

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<RawSettings>, CommandError> {
    match File::open(path).and_then(|mut file| text_of(&mut file)) {
        Ok(text) => parsed(path, &text).map(Some),
        Err(error) => none_if_missing(path, &error),
    }
}

/// The same for a file in the present directory, if it belongs to this user or to root. Another user may have
/// put it there for all who work in that directory, and settings can name a library or another head.
pub(super) fn read_near(path: &Path) -> Result<Option<RawSettings>, CommandError> {
    match trusted_text(path) {
        Ok(Ok(text)) => parsed(path, &text).map(Some),
        Ok(Err(uid)) => {
            let file = path.display();
            print_message(&format!(
                "warning: ignored ./{file}, which belongs to another user (uid {uid}): copy it to use it"
            ));
            Ok(None)
        }
        Err(error) => none_if_missing(path, &error),
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

fn none_if_missing(path: &Path, error: &io::Error) -> Result<Option<RawSettings>, CommandError> {
    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
        return Ok(None);
    }
    let message = format!("cannot read the configuration file {}: {error}", path.display());
    Err(CommandError::configuration(message))
}

fn parsed(path: &Path, text: &str) -> Result<RawSettings, CommandError> {
    parse(text).map_err(|(offset, message)| {
        CommandError::configuration(format!("{}:{}: {message}", path.display(), line_of(text, offset)))
    })
}

/// Parses the text of a file. An error carries its offset in the text.
pub(crate) fn parse(text: &str) -> Result<RawSettings, (usize, String)> {
    let table = DeTable::parse(text)
        .map_err(|error| (error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    table.into_inner().iter().map(setting).collect()
}

fn setting(
    (name, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>),
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
