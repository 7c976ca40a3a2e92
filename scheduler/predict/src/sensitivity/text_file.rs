//! Reads a text file within a bound.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use super::error::SensitivityProblem;

/// The text of a regular file of at most so many bytes. No more than that is read, though the file may grow
/// meanwhile.
pub(super) fn read_text(path: &Path, most: u64) -> Result<String, SensitivityProblem> {
    let metadata = fs::metadata(path).map_err(SensitivityProblem::File)?;
    if !metadata.is_file() {
        return Err(SensitivityProblem::NoFile);
    }
    if metadata.len() > most {
        return Err(SensitivityProblem::TooLarge(most));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(SensitivityProblem::File)?.take(most + 1);
    file.read_to_end(&mut bytes).map_err(SensitivityProblem::File)?;
    if bytes.len() as u64 > most {
        return Err(SensitivityProblem::TooLarge(most));
    }
    String::from_utf8(bytes).map_err(|_| SensitivityProblem::NoText)
}
