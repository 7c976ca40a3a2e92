//! The formats of traces, by name and by what their first line looks like.

use std::fmt;
use std::str::FromStr;

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Our own: `submit_s,duration_s,gpus` and more columns, as the documentation says.
    Csv,
    /// Microsoft's Philly as the authors of Pollux cut it: `timestamp,duration,num_gpus,gpu_time,cluster`.
    Philly,
    /// The pods of Alibaba's cluster-trace-gpu-v2023.
    Openb,
    /// Tab separated lines without a heading, as the simulator of Gavel reads them.
    Gavel,
}

/// A name that is that of no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no format of traces: there are {known}", known = Format::known())]
pub struct UnknownFormat(String);

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::Csv, Format::Philly, Format::Openb, Format::Gavel];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Philly => "philly",
            Format::Openb => "openb",
            Format::Gavel => "gavel",
        }
    }

    /// The format of a trace that begins with this line.
    #[must_use]
    pub fn guess(first_line: &str) -> Option<Format> {
        let has = |column: &str| first_line.split(',').any(|name| name.trim() == column);
        match () {
            () if has("submit_s") || has("duration_s") => Some(Format::Csv),
            () if has("timestamp") && has("num_gpus") => Some(Format::Philly),
            () if has("gpu_milli") && has("creation_time") => Some(Format::Openb),
            () if first_line.split('\t').count() >= 7 => Some(Format::Gavel),
            () => None,
        }
    }

    pub(super) fn known() -> String {
        Format::ALL.map(Format::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let named = |format: &Format| format.name() == text;
        Format::ALL.into_iter().find(named).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
