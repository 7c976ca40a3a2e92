//! A trace as it was read: its jobs, and the rows that were skipped.

use cohabit_types::{Bytes, Span};

use super::error::SkippedRow;

/// The jobs of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// In the order of submission; the first is submitted at zero.
    pub jobs: Vec<TraceJob>,
    /// The rows that were skipped.
    pub skipped: Vec<SkippedRow>,
}

/// A job of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceJob {
    /// Its line in the file, from 1; none for a synthetic job.
    pub line: Option<u64>,
    /// Time from the first submission of the trace to this one.
    pub submitted: Span,
    /// Run time on devices of its own, at the placement that the original cluster gave it; never zero.
    pub duration: Span,
    /// Devices in thousandths; a multiple of 1,000 above 1,000.
    pub devices_milli: u64,
    /// The user who submitted it, or the closest that the trace has.
    pub user: String,
    /// A name shared by jobs that are probably alike.
    pub group: String,
    /// The trained model.
    pub model: Option<String>,
    /// Batch size: samples in one step.
    pub batch: Option<u64>,
    /// Training iterations.
    pub iterations: Option<u64>,
    /// Memory that it needs on each device.
    pub gpu_memory: Option<Bytes>,
    /// The virtual cluster that it was submitted to.
    pub virtual_cluster: Option<String>,
}

/// The largest jobs of a trace that are used.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct JobLimits {
    /// The longest run time.
    pub duration: Option<Span>,
    /// The most devices.
    pub devices: Option<u32>,
}

/// How many jobs of a trace exceed a limit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ExceedingJobs {
    /// Jobs that run too long.
    pub too_long: usize,
    /// Other jobs that have too many devices.
    pub too_many_gpus: usize,
}

impl Trace {
    /// A part of the trace: without the first `skip` jobs, and at most `limit` of the others. Its first job
    /// is submitted at zero.
    #[must_use]
    pub fn part(&self, skip: usize, limit: Option<usize>) -> Trace {
        let after = self.jobs.get(skip..).unwrap_or_default();
        let mut jobs = after[..limit.unwrap_or(usize::MAX).min(after.len())].to_vec();
        let start = jobs.first().map_or(Span::ZERO, |job| job.submitted);
        for job in &mut jobs {
            job.submitted = job.submitted - start;
        }
        Trace { jobs, skipped: self.skipped.clone() }
    }

    /// The trace without jobs that exceed a limit, and how many these are.
    #[must_use]
    pub fn within(mut self, limits: JobLimits) -> (Trace, ExceedingJobs) {
        let milli = limits.devices.map(|devices| u64::from(devices) * 1_000);
        let mut exceeding = ExceedingJobs::default();
        self.jobs.retain(|job| {
            let is_long = limits.duration.is_some_and(|longest| job.duration > longest);
            let is_wide = milli.is_some_and(|most| job.devices_milli > most);
            exceeding.too_long += usize::from(is_long);
            exceeding.too_many_gpus += usize::from(is_wide && !is_long);
            !is_long && !is_wide
        });
        (self, exceeding)
    }

    /// Time from the first to the last submission.
    #[must_use]
    pub fn length(&self) -> Span {
        self.jobs.last().map_or(Span::ZERO, |job| job.submitted)
    }
}
