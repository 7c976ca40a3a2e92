//! The trace formats, with their names and how to recognise them.

use std::fmt;
use std::str::FromStr;

use cohabit_tables::{TableFormat, UnknownFormatName, format_by_name};

use super::{csv_trace, gavel, openb, pai, philly};

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
}

impl TableFormat for TraceFormat {
    const ALL: &'static [TraceFormat] = &TraceFormat::ALL;
    const CONTENT: &'static str = "trace";

    fn name(self) -> &'static str {
        TraceFormat::name(self)
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            TraceFormat::Csv => csv_trace::REQUIRED,
            TraceFormat::Philly => philly::REQUIRED,
            TraceFormat::Openb => openb::REQUIRED,
            TraceFormat::Gavel => &[],
            TraceFormat::Pai | TraceFormat::PaiSeconds => pai::REQUIRED,
        }
    }

    fn has_row(self, line: &str) -> bool {
        self == TraceFormat::Gavel && gavel::is_row(line)
    }

    fn rows(self) -> &'static str {
        "7 or 10 tab-separated fields, no heading"
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TraceFormat {
    type Err = UnknownFormatName;
    fn from_str(text: &str) -> Result<TraceFormat, UnknownFormatName> {
        format_by_name(text)
    }
}
