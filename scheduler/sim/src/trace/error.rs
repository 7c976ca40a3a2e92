//! Why a trace, or a file beside it, cannot be used at all.

use std::io;

use super::format::TraceFormat;

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRow {
    /// Its line, counted from 1.
    pub line: u64,
    /// The reason.
    pub why: String,
}

/// A trace that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file broke off, or is no text.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// Its first line tells nothing.
    #[error("its first line, '{first_line}', is that of no known format: say which it is with --format ({known})", known = TraceFormat::known())]
    UnknownFormat {
        /// That line.
        first_line: String,
    },
    /// It has not the columns of its format.
    #[error("it lacks the column{plural} {missing}: a {format} file has {known}", plural = if .missing.contains(',') { "s" } else { "" })]
    MissingColumns {
        /// Whose columns.
        format: &'static str,
        /// Those that it lacks.
        missing: String,
        /// Those that it needs.
        known: String,
    },
    /// It has a column that means nothing.
    #[error("nobody knows the column '{column}': a {format} file may have {known}")]
    UnknownColumn {
        /// Whose columns.
        format: &'static str,
        /// The one.
        column: String,
        /// Those that there are.
        known: String,
    },
    /// A row makes no sense, and all have to.
    #[error("line {}: {}", .0.line, .0.why)]
    BadRow(SkippedRow),
    /// Steps are no time.
    #[error(
        "it tells steps and not how long they took: give steps in a second with --throughputs FILE, a CSV file with the columns source,gpu,consolidated,model,batch_size,scale_factor,steps_per_s"
    )]
    NoThroughputs,
    /// Nothing is left of it.
    #[error("it has no usable job{}", reasons(*.skipped, .first.as_ref()))]
    NoJobs {
        /// So many rows were left out.
        skipped: usize,
        /// The first of them.
        first: Option<SkippedRow>,
    },
}

/// So many letters of a line say what kind of file it is.
const MAX_SHOWN_CHARS: usize = 60;

impl TraceError {
    pub(super) fn unknown(first_line: &str) -> TraceError {
        TraceError::UnknownFormat { first_line: first_line.chars().take(MAX_SHOWN_CHARS).collect() }
    }
}

fn reasons(skipped: usize, first: Option<&SkippedRow>) -> String {
    first.map_or(String::new(), |first| {
        format!(": {skipped} rows were left out, the first on line {} because {}", first.line, first.why)
    })
}
