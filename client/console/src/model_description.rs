//! Reads the file of `--model`: a description of what is trained.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use cohabit_types::{Bytes, ModelDescription};

use crate::error::CommandError;
use crate::source_line::line_of;

/// More is no description, and no head takes it: the path may be a device that never ends.
const LONGEST: u64 = 4 << 20;

/// Reads the description of a model.
///
/// # Errors
///
/// An unreadable file, or a wrong entry with its line.
pub fn read_model_description(file: &Path) -> Result<ModelDescription, CommandError> {
    let unreadable = |why: &dyn fmt::Display| {
        CommandError::invalid(format!("cannot read the model description {}: {why}", file.display()))
    };
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| unreadable(&error))?;
    opened.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    if text.len() as u64 > LONGEST {
        return Err(unreadable(&format_args!("it has more than {}", Bytes(LONGEST))));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_never_ends_is_no_description() {
        let error = read_model_description(Path::new("/dev/zero")).unwrap_err().message;
        assert!(error.contains("/dev/zero: it has more than 4 MiB"), "{error}");
    }
}
