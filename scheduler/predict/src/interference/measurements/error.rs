//! Why a file of measurements cannot be used.

use super::format::MeasurementFormat;

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// It is another kind of table.
    #[error("line 1: there is no column '{column}': {format} has the columns {columns}")]
    NoColumn {
        /// What is lacking.
        column: &'static str,
        /// Which format was expected.
        format: MeasurementFormat,
        /// All that it must have.
        columns: String,
    },
    /// A cell makes no sense.
    #[error("line {line}, column '{column}': {why}")]
    Cell {
        /// From 1.
        line: u64,
        /// Its heading.
        column: String,
        /// What is wrong, and what was expected.
        why: String,
    },
    /// The rows of a set do not go together.
    #[error("line {line}: {why}")]
    Set {
        /// From 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// There are headings and no more.
    #[error("there is no measurement in it")]
    Empty,
}
