//! Reads the file of `--model`: a description of what is trained.

use std::fs;
use std::path::Path;

use cohabit_types::ModelDescription;

use crate::error::CommandError;
use crate::source_line::line_of;

/// Reads a description of what is trained; an error names the line.
pub fn read_model_description(file: &Path) -> Result<ModelDescription, CommandError> {
    let text = fs::read_to_string(file).map_err(|error| {
        CommandError::invalid(format!("the description {} cannot be read: {error}", file.display()))
    })?;
    parse_model_description(file, &text)
}

/// What this text, which lies in the file, says of a model.
pub fn parse_model_description(file: &Path, text: &str) -> Result<ModelDescription, CommandError> {
    toml::from_str(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        CommandError::invalid(format!("{}:{line}: {}", file.display(), error.message()))
    })
}
