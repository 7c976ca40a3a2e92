//! Reads measurements from files.

use std::io::{BufRead, BufReader, Cursor, Read};

use cohabit_policy::interference::MeasuredSet;
use cohabit_predict::interference::{MeasurementFormat, ReadError, read};

/// A column that only a table of pairs has.
const OF_PAIRS: &str = "model1";

/// Reads a co-location table or Gavel's measured pairs; the first line tells which it is.
///
/// # Errors
/// The first invalid place of the file.
pub fn read_measurements(source: impl Read) -> Result<Vec<MeasuredSet>, ReadError> {
    let mut text = BufReader::new(source);
    let mut heading = String::new();
    text.read_line(&mut heading).map_err(csv::Error::from)?;
    let is_pairs = heading.trim().split(',').any(|column| column == OF_PAIRS);
    let format = if is_pairs { MeasurementFormat::GavelPairs } else { MeasurementFormat::ColocationSet };
    read(Cursor::new(heading).chain(text), format)
}
