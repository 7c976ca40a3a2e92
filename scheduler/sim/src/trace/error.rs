//! Why a trace or a table of throughputs cannot be used.

use std::io;

use super::format::TraceFormat;

/// A skipped row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRow {
    /// Its line, from 1.
    pub line: u64,
    /// The reason.
    pub why: String,
}

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file is truncated or not text.
    #[error("cannot read the file: {0}")]
    Unreadable(#[from] io::Error),
    /// The first line matches no format.
    #[error("unknown trace format, the first line is '{first_line}': give the format with --format ({known})", known = TraceFormat::known_names())]
    UnknownFormat {
        /// The first line.
        first_line: String,
    },
    /// Required columns are missing.
    #[error("missing column{plural} {missing}: a {format} file has {known}", plural = if .missing.contains(',') { "s" } else { "" })]
    MissingColumns {
        /// The format.
        format: &'static str,
        /// The missing columns.
        missing: String,
        /// The required columns.
        known: String,
    },
    /// A column has no meaning in this format.
    #[error("unknown column '{column}': a {format} file may have {known}")]
    UnknownColumn {
        /// The format.
        format: &'static str,
        /// The unknown column.
        column: String,
        /// The known columns.
        known: String,
    },
    /// A row is invalid, and strict reading was requested.
    #[error("line {}: {}", .0.line, .0.why)]
    BadRow(SkippedRow),
    /// The trace states steps but not how long they take.
    #[error(
        "the trace gives steps instead of times: add --throughputs FILE, a CSV file with the columns source,gpu,consolidated,model,batch_size,scale_factor,steps_per_s"
    )]
    NoThroughputs,
    /// No valid row is left.
    #[error("the file has no usable job{}", reasons(*.skipped, .first.as_ref()))]
    NoJobs {
        /// The number of skipped rows.
        skipped: usize,
        /// The first skipped row.
        first: Option<SkippedRow>,
    },
}

/// How many characters of a line are shown in an error.
const MAX_SHOWN_CHARS: usize = 60;

impl TraceError {
    pub(super) fn unknown(first_line: &str) -> TraceError {
        TraceError::UnknownFormat { first_line: first_line.chars().take(MAX_SHOWN_CHARS).collect() }
    }
}

fn reasons(skipped: usize, first: Option<&SkippedRow>) -> String {
    first.map_or(String::new(), |first| {
        format!(": {skipped} rows were skipped, the first one on line {}: {}", first.line, first.why)
    })
}
