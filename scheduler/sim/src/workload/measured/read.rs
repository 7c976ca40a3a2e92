//! Reads measurements from files.

use std::io::Read;

use cohabit_policy::interference::MeasuredSet;
use cohabit_predict::interference::{ReadError, read};

/// Reads a co-location table or Gavel's measured pairs; the first line tells which it is.
///
/// # Errors
/// The first invalid place of the file.
pub fn read_measurements(source: impl Read) -> Result<Vec<MeasuredSet>, ReadError> {
    read(source, None).map(|table| table.sets)
}
