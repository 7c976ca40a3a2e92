//! Reads the keys of one table: an unknown key is an error that names the nearest one.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::known_names::known_names;

/// What is wrong in a configuration file.
#[derive(Debug)]
pub(super) struct ConfigError {
    /// Where in the text.
    pub(super) offset: Option<usize>,
    pub(super) what: String,
}

impl ConfigError {
    pub(super) fn of_file(what: &str) -> ConfigError {
        ConfigError { offset: None, what: what.to_owned() }
    }
}

/// A table whose keys are known.
pub(super) struct TableReader<'a> {
    table: &'a DeTable<'a>,
    /// Where the table begins.
    offset: Option<usize>,
}

impl<'a> TableReader<'a> {
    /// The table of the whole file.
    pub(super) fn top(table: &'a DeTable<'a>, keys: &[&str]) -> Result<TableReader<'a>, ConfigError> {
        TableReader::new(table, None, keys)
    }

    fn new(
        table: &'a DeTable<'a>,
        offset: Option<usize>,
        keys: &[&str],
    ) -> Result<TableReader<'a>, ConfigError> {
        match table.keys().find(|key| !keys.contains(&key.get_ref().as_ref())) {
            None => Ok(TableReader { table, offset }),
            Some(unknown) => Err(ConfigError {
                offset: Some(unknown.span().start),
                what: format!(
                    "there is no key '{}' here: {}",
                    unknown.get_ref(),
                    known_names(unknown.get_ref(), keys.iter().copied())
                ),
            }),
        }
    }

    fn entry(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// An error about the value of this key, or about the table where it is missing.
    pub(super) fn wrong(&self, key: &str, what: impl Into<String>) -> ConfigError {
        let offset = self.entry(key).map(|value| value.span().start).or(self.offset);
        ConfigError { offset, what: what.into() }
    }

    /// A text that is not empty and has no control characters.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.entry(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::String(text)) => self.plain(key, text).map(Some),
            Some(_) => Err(self.wrong(key, format!("{key} takes a text: write {key} = \"...\""))),
        }
    }

    fn plain(&self, key: &str, text: &str) -> Result<String, ConfigError> {
        match text.is_empty() || text.contains(char::is_control) {
            true => Err(self.wrong(key, format!("{key} is empty or has control characters"))),
            false => Ok(text.to_owned()),
        }
    }

    pub(super) fn required_text(&self, key: &str) -> Result<String, ConfigError> {
        self.text(key)?.ok_or_else(|| self.wrong(key, format!("{key} is missing: add {key} = \"...\"")))
    }

    /// A path, which counts from this directory.
    pub(super) fn path(&self, key: &str, folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
        Ok(self.text(key)?.map(|path| folder.join(path)))
    }

    /// One text, or a list of texts; empty where the key is missing.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, ConfigError> {
        let wrong =
            || self.wrong(key, format!("{key} takes a list of texts: write {key} = [\"...\", \"...\"]"));
        match self.entry(key).map(Spanned::get_ref) {
            None => Ok(Vec::new()),
            Some(DeValue::String(text)) => Ok(vec![self.plain(key, text)?]),
            Some(DeValue::Array(items)) => {
                let text = |item: &Spanned<DeValue<'_>>| match item.get_ref().as_str() {
                    Some(text) => self.plain(key, text),
                    None => Err(wrong()),
                };
                let texts: Vec<String> = items.iter().map(text).collect::<Result<_, _>>()?;
                if texts.is_empty() { Err(wrong()) } else { Ok(texts) }
            }
            Some(_) => Err(wrong()),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, ConfigError> {
        match self.entry(key).map(Spanned::get_ref) {
            None => Ok(false),
            Some(DeValue::Boolean(value)) => Ok(*value),
            Some(_) => Err(self.wrong(key, format!("{key} takes true or false"))),
        }
    }

    /// A whole number within these bounds.
    pub(super) fn number(&self, key: &str, least: usize, most: usize) -> Result<Option<usize>, ConfigError> {
        let wrong = || self.wrong(key, format!("{key} takes a number from {least} to {most}"));
        match self.entry(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::Integer(number)) => {
                let number = number.as_str().parse().ok().filter(|it| (least..=most).contains(it));
                number.map(Some).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }

    /// The tables `[[key]]`, each with these keys.
    pub(super) fn tables(
        &self,
        key: &str,
        most: usize,
        keys: &[&str],
    ) -> Result<Vec<TableReader<'a>>, ConfigError> {
        let items = match self.entry(key).map(Spanned::get_ref) {
            None => return Ok(Vec::new()),
            Some(DeValue::Array(items)) => items,
            Some(_) => return Err(self.wrong(key, format!("write [[{key}]] with two brackets"))),
        };
        if items.len() > most {
            return Err(self.wrong(key, format!("there are more than {most} of [[{key}]]")));
        }
        let table = |item: &'a Spanned<DeValue<'a>>| match item.get_ref().as_table() {
            Some(table) => TableReader::new(table, Some(item.span().start), keys),
            None => Err(self.wrong(key, format!("write [[{key}]] with two brackets"))),
        };
        items.iter().map(table).collect()
    }
}
