//! Reads one configuration file: flat TOML with known keys and plain values.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use cohabit_console::{CommandError, line_of};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{RawSettings, SettingKey};
use crate::closest_name::closest_name;

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<RawSettings>, CommandError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => {
            return Err(CommandError::configuration(format!(
                "cannot read the configuration file {}: {error}",
                path.display()
            )));
        }
    };
    parse(&text).map(Some).map_err(|(offset, message)| {
        CommandError::configuration(format!("{}:{}: {message}", path.display(), line_of(&text, offset)))
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
