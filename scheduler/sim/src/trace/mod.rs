//! Traces: which jobs came to a real cluster when, how large they were, and how long they ran.
//!
//! Plain CSV and the public formats are read as they are, packed or not. A row that makes no sense is left
//! out and told of by its line, never guessed at; the order of jobs is that of their submission. Nothing here
//! knows of clusters or models: [`crate::workload`] makes jobs of a simulated cluster from what is read.

mod civil;
mod error;
mod format;
mod gavel;
mod openb;
mod philly;
mod plain;
mod rows;
mod synthetic;
#[cfg(test)]
mod tests;
mod throughputs;
mod unpack;

use std::io::Read;

use cohabit_types::{Bytes, Span};

pub use error::TraceError;
pub use format::{TraceFormat, UnknownFormat};
pub use rows::{SkippedRow, Strictness};
pub use synthetic::synthetic;
pub use throughputs::{ParseThroughputSourceError, ThroughputSource, Throughputs};

use crate::trace::rows::Rows;

/// What came to a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// In the order of submission; the first is submitted at zero.
    pub jobs: Vec<TraceJob>,
    /// Rows that were left out.
    pub skipped: Vec<SkippedRow>,
}

/// A job of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceJob {
    /// How long after the first job of the trace it was submitted.
    pub submitted: Span,
    /// How long it ran, on devices of its own, in the place that the trace's cluster gave it; never zero.
    pub duration: Span,
    /// Thousandths of devices; whole ones where it is above 1,000.
    pub devices_milli: u64,
    /// Who submitted it, or the closest that the trace tells.
    pub user: String,
    /// Jobs that are probably alike.
    pub group: String,
    /// What was trained.
    pub model: Option<String>,
    /// Samples in one step.
    pub batch: Option<u64>,
    /// Training iterations.
    pub iterations: Option<u64>,
    /// Memory that it needs on each device.
    pub gpu_memory: Option<Bytes>,
    /// The virtual cluster that it was submitted to.
    pub virtual_cluster: Option<String>,
}

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
        TraceFormat::Csv => plain::read(text, reading.strictness)?,
        TraceFormat::Philly => philly::read(text, reading.strictness)?,
        TraceFormat::Openb => openb::read(text, reading.strictness)?,
        TraceFormat::Gavel => {
            let throughputs = reading.throughputs.as_ref().ok_or(TraceError::NoThroughputs)?;
            gavel::read(text, reading.strictness, throughputs)?
        }
    };
    Trace::of(rows)
}

impl Trace {
    fn of(rows: Rows) -> Result<Trace, TraceError> {
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

    /// A part of it: without so many of the first jobs, and at most so many of the others. Its first job is
    /// submitted at zero.
    #[must_use]
    pub fn part(mut self, skip: usize, limit: Option<usize>) -> Trace {
        self.jobs.drain(..skip.min(self.jobs.len()));
        self.jobs.truncate(limit.unwrap_or(usize::MAX));
        let start = self.jobs.first().map_or(Span::ZERO, |job| job.submitted);
        for job in &mut self.jobs {
            job.submitted = job.submitted - start;
        }
        self
    }

    /// Between its first and its last submission.
    #[must_use]
    pub fn length(&self) -> Span {
        self.jobs.last().map_or(Span::ZERO, |job| job.submitted)
    }
}
