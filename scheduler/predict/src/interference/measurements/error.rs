//! Why a file of measurements cannot be used.

use super::format::MeasurementFormat;

/// Why a file of measurements cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not valid CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// A column of the format is missing.
    #[error("line 1: missing column '{column}': {format} has the columns {columns}")]
    NoColumn {
        /// The missing column.
        column: &'static str,
        /// The expected format.
        format: MeasurementFormat,
        /// All columns of the format.
        columns: String,
    },
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
