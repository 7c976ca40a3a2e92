//! Measurements of co-located jobs, read from files.

mod co_location;
mod csv_rows;
mod error;
mod format;
mod gavel;
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

/// What is wrong with a rate whose ratio to the rate alone is not a number that can be computed with.
const OUT_OF_RANGE: &str =
    "it is out of range beside the rate alone: their ratio is no finite number above 0";

/// The ratio of the rate alone to that beside others, if it is a finite number above 0.
fn slowdown_of(alone: f64, together: f64) -> Option<f64> {
    Some(alone / together).filter(|ratio| ratio.is_normal())
}
