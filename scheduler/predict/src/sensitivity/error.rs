//! Why tables of sensitivity cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use cohabit_policy::SensitivityError;
use cohabit_types::Bytes;

use super::format::{MOST_PROFILES, columns};

/// A file or directory of tables that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ReadSensitivityError {
    /// The file or directory.
    path: PathBuf,
    /// What is wrong with it.
    problem: SensitivityProblem,
}

impl ReadSensitivityError {
    pub(super) fn new(path: &Path, problem: SensitivityProblem) -> ReadSensitivityError {
        ReadSensitivityError { path: path.to_owned(), problem }
    }

    /// What is wrong, without the file.
    #[must_use]
    pub const fn problem(&self) -> &SensitivityProblem {
        &self.problem
    }
}

/// What is wrong with tables of sensitivity.
#[derive(Debug, thiserror::Error)]
pub enum SensitivityProblem {
    /// The file or directory cannot be read.
    #[error("it cannot be read: {0}")]
    File(io::Error),
    /// The path is neither a file nor a directory.
    #[error("it is neither a file nor a directory: give a file of tables, or a directory of models")]
    NoFile,
    /// The file is too large.
    #[error("it has more than {}: split it, or leave profiles out that no job has", Bytes(*.0))]
    TooLarge(u64),
    /// The file is not text.
    #[error("it is not UTF-8 text: write it as CSV with the columns {}", columns())]
    NoText,
    /// The file is not CSV.
    #[error("{0}")]
    Csv(csv::Error),
    /// A column that is unknown, missing or there twice.
    #[error("line 1: {what} column '{column}': the columns are {}, each once", columns())]
    Column {
        /// What is wrong with the column.
        what: &'static str,
        /// Its name.
        column: String,
    },
    /// A cell is wrong.
    #[error("line {line}, column '{column}': {why}")]
    Cell {
        /// The line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// What is wrong, and what was expected.
        why: String,
    },
    /// A row is wrong.
    #[error("line {line}: {why}")]
    Row {
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A profile is no table.
    #[error("profile '{profile}': {why}")]
    Profile {
        /// The profile.
        profile: String,
        /// What is wrong with it.
        why: SensitivityError,
    },
    /// The file has too many rows.
    #[error("it has more than {0} rows: leave profiles out that no job has, or measure fewer points")]
    TooManyRows(usize),
    /// The file or directory has too many profiles.
    #[error("it has more than {MOST_PROFILES} profiles: leave those out that no job has")]
    TooManyProfiles,
    /// There are no speeds.
    #[error("it has no speeds: write the header {}, and a row for each measured point", columns())]
    Empty,
    /// A file of a model has no table.
    #[error("{0}")]
    Model(String),
    /// A directory without tables.
    #[error("it has no tables: {0}")]
    NoTables(String),
}
