//! Reads tables of how much cores and host memory speed jobs up.
//!
//! A file has our own format (`csv_table.rs`); a directory has the public tables of Synergy, one Python file
//! for each model (`synergy.rs`). What a table means is said in `cohabit_policy`. Start with
//! [`read_sensitivity`].

mod csv_table;
mod error;
mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod synergy;
#[cfg(test)]
mod tests;
mod text_file;

use std::fs;
use std::path::Path;

pub use self::error::{ReadSensitivityError, SensitivityProblem};
pub use self::format::ReadTables;
use self::text_file::read_text;

/// The largest file of our own format.
const MOST_FILE_BYTES: u64 = 64 << 20;

/// Reads the tables of a file of our own format, or of a directory of Synergy's models. Everything in a file
/// must be right; of a directory, tables that are wrong are left out.
///
/// # Errors
/// What is wrong with the file, where, and what to do; of a directory, that there is no table in it.
pub fn read_sensitivity(path: &Path) -> Result<ReadTables, ReadSensitivityError> {
    let about = |problem| ReadSensitivityError::new(path, problem);
    let metadata = fs::metadata(path).map_err(|error| about(SensitivityProblem::File(error)))?;
    if metadata.is_dir() {
        return synergy::read_directory(path);
    }
    let text = read_text(path, MOST_FILE_BYTES).map_err(about)?;
    let tables = csv_table::read(&text).map_err(about)?;
    Ok((tables, Vec::new()))
}
