//! Reads tables of how much cores and host memory speed jobs up.
//!
//! A file has our own format (`csv_table.rs`); a directory has the public tables of Synergy, one Python file
//! for each model (`synergy.rs`). What a table means is said in `cohabit_policy`. Start with
//! [`read_sensitivity`].

mod csv_table;
mod error;
mod limits;
mod synergy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cohabit_policy::SensitivityTable;

pub use self::error::{ReadSensitivityError, SensitivityProblem};

/// The largest file of our own format.
const MOST_FILE_BYTES: u64 = 64 << 20;

/// Tables by the name of their profile, and a sentence about each one that was left out.
pub type ReadTables = (BTreeMap<String, Arc<SensitivityTable>>, Vec<String>);

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

/// The text of a regular file of at most so many bytes. No more than that is read, though the file may grow
/// meanwhile.
fn read_text(path: &Path, most: u64) -> Result<String, SensitivityProblem> {
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
