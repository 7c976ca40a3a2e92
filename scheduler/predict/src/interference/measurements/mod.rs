//! Measurements of co-located jobs, read from files.

mod co_location;
mod csv_rows;
mod error;
mod format;
mod gavel;
mod slowdown;
#[cfg(test)]
mod tests;

use cohabit_policy::interference::MeasuredSet;
use cohabit_tables::{TableText, detect, open_table};

pub use self::error::ReadError;
pub use self::format::MeasurementFormat;

/// The measurements of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ColocationTable {
    /// The format of the file.
    pub format: MeasurementFormat,
    /// Its sets, in its order.
    pub sets: Vec<MeasuredSet>,
}

/// Reads the sets of a file, gzip or not. Without a format, the first line determines it.
///
/// # Errors
///
/// An unknown format, or the first invalid place.
pub fn read(
    source: impl std::io::Read,
    format: Option<MeasurementFormat>,
) -> Result<ColocationTable, ReadError> {
    let TableText { first_line, text } = open_table(source)?;
    let format = match format {
        Some(format) => format,
        None => detect(&first_line)?,
    };
    let sets = match format {
        MeasurementFormat::ColocationSet => co_location::read(text)?,
        MeasurementFormat::GavelPairs => gavel::read(text)?,
    };
    if sets.is_empty() { Err(ReadError::Empty) } else { Ok(ColocationTable { format, sets }) }
}
