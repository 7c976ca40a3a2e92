//! The formats of measurements, by name and by their columns.

use std::fmt;
use std::str::FromStr;

use cohabit_tables::{TableFormat, UnknownFormatName, format_by_name};
use cohabit_types::CO_LOCATION_COLUMNS;

/// A format of measurements.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum MeasurementFormat {
    /// A row for each member of a set, as `cohabit profile` writes it.
    #[default]
    ColocationSet,
    /// Gavel's measured pairs, flattened to a row for each pair.
    GavelPairs,
}

/// Columns that a file of Gavel's pairs must have.
const GAVEL_COLUMNS: [&str; 11] =
    ["source", "gpu", "model1", "batch1", "model2", "batch2", "co1", "co2", "iso1", "iso2", "feasible"];

impl MeasurementFormat {
    const fn word(self) -> &'static str {
        match self {
            MeasurementFormat::ColocationSet => "co-location",
            MeasurementFormat::GavelPairs => "gavel-pairs",
        }
    }
}

impl TableFormat for MeasurementFormat {
    const ALL: &'static [MeasurementFormat] =
        &[MeasurementFormat::ColocationSet, MeasurementFormat::GavelPairs];
    const CONTENT: &'static str = "co-location table";

    fn name(self) -> &'static str {
        self.word()
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            MeasurementFormat::ColocationSet => &CO_LOCATION_COLUMNS,
            MeasurementFormat::GavelPairs => &GAVEL_COLUMNS,
        }
    }
}

impl fmt::Display for MeasurementFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for MeasurementFormat {
    type Err = UnknownFormatName;

    fn from_str(word: &str) -> Result<MeasurementFormat, UnknownFormatName> {
        format_by_name(word)
    }
}
