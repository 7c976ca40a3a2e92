//! The formats of traces, by name and by what their first line looks like.

use std::fmt;
use std::str::FromStr;

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceFormat {
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
#[error("'{0}' is no format of traces: there are {known}", known = TraceFormat::known())]
pub struct UnknownFormat(String);

impl TraceFormat {
    /// All of them.
    pub const ALL: [TraceFormat; 4] =
        [TraceFormat::Csv, TraceFormat::Philly, TraceFormat::Openb, TraceFormat::Gavel];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TraceFormat::Csv => "csv",
            TraceFormat::Philly => "philly",
            TraceFormat::Openb => "openb",
            TraceFormat::Gavel => "gavel",
        }
    }

    /// The format of a trace that begins with this line.
    #[must_use]
    pub fn guess(first_line: &str) -> Option<TraceFormat> {
        let has = |column: &str| first_line.split(',').any(|name| name.trim() == column);
        match () {
            () if has("submit_s") || has("duration_s") => Some(TraceFormat::Csv),
            () if has("timestamp") && has("num_gpus") => Some(TraceFormat::Philly),
            () if has("gpu_milli") && has("creation_time") => Some(TraceFormat::Openb),
            () if first_line.split('\t').count() >= 7 => Some(TraceFormat::Gavel),
            () => None,
        }
    }

    pub(super) fn known() -> String {
        TraceFormat::ALL.map(TraceFormat::name).join(", ")
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TraceFormat {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<TraceFormat, UnknownFormat> {
        let named = |format: &TraceFormat| format.name() == text;
        TraceFormat::ALL.into_iter().find(named).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
