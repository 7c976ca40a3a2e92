//! Why a trace or a table of throughputs cannot be used.

use std::io;

use cohabit_tables::{MissingColumns, UnknownTableFormat};

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
    #[error(transparent)]
    UnknownFormat(#[from] UnknownTableFormat),
    /// Required columns are missing.
    #[error(transparent)]
    MissingColumns(#[from] MissingColumns),
    /// A column has no meaning in this format.
    #[error("line 1: unknown column '{column}': files in the format {format} may have {known}")]
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
    /// There are throughputs, but the trace states times.
    #[error(
        "--throughputs is for traces in the format gavel, and this one has the format {format}: remove it"
    )]
    UnusedThroughputs {
        /// The format of the trace.
        format: &'static str,
    },
    /// No valid row is left.
    #[error("the file has no usable job{}", reasons(*.skipped, .first.as_ref()))]
    NoJobs {
        /// The number of skipped rows.
        skipped: usize,
        /// The first skipped row.
        first: Option<SkippedRow>,
    },
}

fn reasons(skipped: usize, first: Option<&SkippedRow>) -> String {
    first.map_or(String::new(), |first| {
        format!(": {skipped} rows were skipped, the first one on line {}: {}", first.line, first.why)
    })
}
