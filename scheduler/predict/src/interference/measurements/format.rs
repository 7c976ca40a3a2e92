//! The formats of measurements, by name.

use std::fmt;
use std::str::FromStr;

/// A format of measurements.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum MeasurementFormat {
    /// A row for each member of a set, as `cohabit profile` writes it.
    #[default]
    ColocationSet,
    /// Gavel's measured pairs, flattened to a row for each pair.
    GavelPairs,
}

impl MeasurementFormat {
    pub(super) const ALL: [MeasurementFormat; 2] =
        [MeasurementFormat::ColocationSet, MeasurementFormat::GavelPairs];

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
                "unknown format of measurements '{word}': the formats are {}",
                MeasurementFormat::ALL.map(MeasurementFormat::word).join(", ")
            )
        })
    }
}
