//! Traces: when jobs came to a real cluster, how large they were, and how long they ran.
//!
//! Reads the CSV format of this project and public formats, gzip-compressed or not. An invalid row is skipped
//! and reported with its line, never guessed at; jobs are ordered by submission. Nothing here knows clusters
//! or models: [`crate::workload`] turns a trace into the jobs of a simulated cluster.
//!
//! Start reading with [`read`]; each format has a file of its own.

mod civil;
mod csv_trace;
mod error;
mod format;
mod gavel;
mod job;
mod openb;
mod pai;
mod philly;
#[cfg(test)]
pub(crate) mod published;
mod rows;
mod synthetic;
#[cfg(test)]
mod tests;
mod throughputs;

use std::io::Read;

use cohabit_tables::{TableText, detect, open_table};

pub use error::{SkippedRow, TraceError};
pub use format::TraceFormat;
pub use job::{ExceedingJobs, JobLimits, Trace, TraceJob};
pub use rows::Strictness;
pub use synthetic::synthetic;
pub use throughputs::{ParseThroughputSourceError, ThroughputSource, Throughputs};

use crate::trace::pai::TimeUnit;
use crate::trace::rows::Rows;

/// How to read a trace.
#[derive(Debug, Default)]
pub struct ReadOptions {
    /// The format; recognised from the first line if `None`.
    pub format: Option<TraceFormat>,
    /// What to do with invalid rows.
    pub strictness: Strictness,
    /// Steps per second, for traces that give only steps.
    pub throughputs: Option<Throughputs>,
}

/// Reads a trace, decompressing it first if it is gzip.
///
/// # Errors
/// If the file cannot be read, its format is unknown, it lacks columns, it has unknown columns, or no row is
/// valid; with [`Strictness::Strict`] also for the first invalid row.
pub fn read(source: impl Read, reading: &ReadOptions) -> Result<Trace, TraceError> {
    let TableText { first_line, text } = open_table(source)?;
    let format = match reading.format {
        Some(format) => format,
        None => detect::<TraceFormat>(&first_line)?,
    };
    if reading.throughputs.is_some() && format != TraceFormat::Gavel {
        return Err(TraceError::UnusedThroughputs { format: format.name() });
    }
    let rows = match format {
        TraceFormat::Csv => csv_trace::read(text, reading.strictness)?,
        TraceFormat::Philly => philly::read(text, reading.strictness)?,
        TraceFormat::Openb => openb::read(text, reading.strictness)?,
        TraceFormat::Pai => pai::read(text, reading.strictness, TimeUnit::Hours)?,
        TraceFormat::PaiSeconds => pai::read(text, reading.strictness, TimeUnit::Seconds)?,
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
