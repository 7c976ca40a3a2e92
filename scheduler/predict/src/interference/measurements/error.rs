//! Why a file of measurements cannot be used.

use std::io;

use cohabit_tables::{MissingColumns, UnknownTableFormat};

/// Why a file of measurements cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not valid CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// The file cannot be read, or is a broken archive.
    #[error("cannot read the file: {0}")]
    Unreadable(#[from] io::Error),
    /// The first line has the columns of no format.
    #[error(transparent)]
    UnknownFormat(#[from] UnknownTableFormat),
    /// Columns of the format are missing.
    #[error(transparent)]
    MissingColumns(#[from] MissingColumns),
    /// A cell is invalid.
    #[error("line {line}, column '{column}': {why}")]
    Cell {
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// What is wrong, and what was expected.
        why: String,
    },
    /// The rows of a set contradict each other.
    #[error("line {line}: {why}")]
    Set {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The file has a header only.
    #[error("the file has no measurements")]
    Empty,
}
