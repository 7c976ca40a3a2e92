//! The trace formats, with their names and how to recognise them.

use std::fmt;
use std::str::FromStr;

/// A trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceFormat {
    /// The format of this project: `submit_s,duration_s,gpus` and optional columns, see docs/SIMULATION.md.
    Csv,
    /// Microsoft's Philly trace as published with Pollux: `timestamp,duration,num_gpus,gpu_time,cluster`.
    Philly,
    /// The pod list of Alibaba's cluster-trace-gpu-v2023.
    Openb,
    /// Tab-separated lines without a header, as Gavel's simulator reads them.
    Gavel,
    /// Alibaba's PAI trace as published with GAIA: `arrival_time,length,cpus`, times in hours.
    Pai,
    /// The same with times in seconds.
    PaiSeconds,
}

/// An unknown name of a trace format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown trace format '{0}': the formats are {known}", known = TraceFormat::known_names())]
pub struct UnknownFormat(String);

impl TraceFormat {
    /// Every format.
    pub const ALL: [TraceFormat; 6] = [
        TraceFormat::Csv,
        TraceFormat::Philly,
        TraceFormat::Openb,
        TraceFormat::Gavel,
        TraceFormat::Pai,
        TraceFormat::PaiSeconds,
    ];

    /// The name on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TraceFormat::Csv => "csv",
            TraceFormat::Philly => "philly",
            TraceFormat::Openb => "openb",
            TraceFormat::Gavel => "gavel",
            TraceFormat::Pai => "pai",
            TraceFormat::PaiSeconds => "pai-seconds",
        }
    }

    /// The format of a trace that begins with this line, if it is recognised.
    #[must_use]
    pub fn guess(first_line: &str) -> Option<TraceFormat> {
        let has = |column: &str| first_line.split(',').any(|name| name.trim() == column);
        match () {
            () if has("submit_s") || has("duration_s") => Some(TraceFormat::Csv),
            () if has("timestamp") && has("num_gpus") => Some(TraceFormat::Philly),
            () if has("gpu_milli") && has("creation_time") => Some(TraceFormat::Openb),
            () if has("arrival_time") && has("length") && has("cpus") => Some(TraceFormat::Pai),
            () if first_line.split('\t').count() >= 7 => Some(TraceFormat::Gavel),
            () => None,
        }
    }

    pub(super) fn known_names() -> String {
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
