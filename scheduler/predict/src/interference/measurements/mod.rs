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

pub use self::error::ReadError;
pub use self::format::MeasurementFormat;

/// Reads the sets of a file, in its order.
///
/// # Errors
///
/// The first invalid place.
pub fn read(text: impl std::io::Read, format: MeasurementFormat) -> Result<Vec<MeasuredSet>, ReadError> {
    let sets = match format {
        MeasurementFormat::ColocationSet => co_location::read(text)?,
        MeasurementFormat::GavelPairs => gavel::read(text)?,
    };
    if sets.is_empty() { Err(ReadError::Empty) } else { Ok(sets) }
}
