//! A trace as it was read: its jobs, and the rows that were skipped.

use cohabit_types::{Bytes, Span};

use super::error::SkippedRow;

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

impl Trace {
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
