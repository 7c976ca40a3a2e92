//! Traces: which jobs came to a real cluster when, how large they were, and how long they ran.
//!
//! Plain CSV and the public formats are read as they are, packed or not. A row that makes no sense is left
//! out and told of by its line, never guessed at; the order of jobs is that of their submission. Nothing here
//! knows of clusters or models: [`crate::workload`] makes jobs of a simulated cluster from what is read.

mod civil;
mod csv_trace;
mod error;
mod format;
mod gavel;
mod job;
mod openb;
mod philly;
mod rows;
mod synthetic;
#[cfg(test)]
mod tests;
mod throughputs;
mod unpack;

use std::io::Read;

pub use error::{SkippedRow, TraceError};
pub use format::{TraceFormat, UnknownFormat};
pub use job::{Trace, TraceJob};
pub use rows::Strictness;
pub use synthetic::synthetic;
pub use throughputs::{ParseThroughputSourceError, ThroughputSource, Throughputs};

use crate::trace::rows::Rows;

/// How a trace is to be read.
#[derive(Debug, Default)]
pub struct ReadOptions {
    /// Its format; guessed from its first line where it is not told.
    pub format: Option<TraceFormat>,
    /// What becomes of rows that make no sense.
    pub strictness: Strictness,
    /// Steps in a second, for traces that tell only steps.
    pub throughputs: Option<Throughputs>,
}

/// Reads a trace, unpacking it first where it is gzip.
///
/// # Errors
/// If it cannot be read, has no known format, lacks columns, has columns that nobody knows, or has no usable
/// row; with [`Strictness::Strict`] also for the first row that makes no sense.
pub fn read(source: impl Read, reading: &ReadOptions) -> Result<Trace, TraceError> {
    let (first_line, text) = unpack::unpack(source)?;
    let format = match reading.format {
        Some(format) => format,
        None => TraceFormat::guess(&first_line).ok_or_else(|| TraceError::unknown(&first_line))?,
    };
    let rows = match format {
        TraceFormat::Csv => csv_trace::read(text, reading.strictness)?,
        TraceFormat::Philly => philly::read(text, reading.strictness)?,
        TraceFormat::Openb => openb::read(text, reading.strictness)?,
        TraceFormat::Gavel => {
            let throughputs = reading.throughputs.as_ref().ok_or(TraceError::NoThroughputs)?;
            gavel::read(text, reading.strictness, throughputs)?
        }
    };
    from_rows(rows)
}

fn from_rows(rows: Rows) -> Result<Trace, TraceError> {
    let Rows { mut jobs, skipped } = rows;
    let Some(start) = jobs.iter().map(|job| job.submitted).min() else {
        return Err(TraceError::NoJobs { skipped: skipped.len(), first: skipped.into_iter().next() });
    };
    jobs.sort_by_key(|job| job.submitted);
    for job in &mut jobs {
        job.submitted = job.submitted - start;
    }
    Ok(Trace { jobs, skipped })
}
