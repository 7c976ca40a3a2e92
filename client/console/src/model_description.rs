//! Reads the file of `--model`: a description of what is trained.

use std::fs;
use std::path::Path;

use cohabit_types::ModelDescription;

use crate::error::CommandError;
use crate::source_line::line_of;

/// Reads the description of a model.
///
/// # Errors
///
/// An unreadable file, or a wrong entry with its line.
pub fn read_model_description(file: &Path) -> Result<ModelDescription, CommandError> {
    let text = fs::read_to_string(file).map_err(|error| {
        CommandError::invalid(format!("cannot read the model description {}: {error}", file.display()))
    })?;
    parse_model_description(file, &text)
}

/// Parses the text of `file`.
///
/// # Errors
///
/// A wrong entry, with its line.
pub fn parse_model_description(file: &Path, text: &str) -> Result<ModelDescription, CommandError> {
    toml::from_str(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        CommandError::invalid(format!("{}:{line}: {}", file.display(), error.message()))
    })
}
