//! Measurements of co-located jobs from the files that hold them.

mod cells;
mod co_location;
mod gavel;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use cohabit_policy::interference::MeasuredSet;

/// A format of measurements.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum MeasurementFormat {
    /// A row for each member of a set: what `cohabit profile` writes.
    #[default]
    ColocationSet,
    /// Gavel's pairs, flattened: a row for each pair.
    GavelPairs,
}

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

/// The sets of a file, in its order.
///
/// # Errors
/// The first place that makes no sense.
pub fn read(text: impl std::io::Read, format: MeasurementFormat) -> Result<Vec<MeasuredSet>, ReadError> {
    let sets = match format {
        MeasurementFormat::ColocationSet => co_location::read(text)?,
        MeasurementFormat::GavelPairs => gavel::read(text)?,
    };
    if sets.is_empty() { Err(ReadError::Empty) } else { Ok(sets) }
}

impl MeasurementFormat {
    const ALL: [MeasurementFormat; 2] = [MeasurementFormat::ColocationSet, MeasurementFormat::GavelPairs];

    const fn word(self) -> &'static str {
        match self {
            MeasurementFormat::ColocationSet => "co-location",
            MeasurementFormat::GavelPairs => "gavel-pairs",
        }
    }
}

impl fmt::Display for MeasurementFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for MeasurementFormat {
    type Err = String;

    fn from_str(word: &str) -> Result<MeasurementFormat, String> {
        MeasurementFormat::ALL.into_iter().find(|format| format.word() == word).ok_or_else(|| {
            format!(
                "'{word}' is no format of measurements: there are {}",
                MeasurementFormat::ALL.map(MeasurementFormat::word).join(", ")
            )
        })
    }
}
