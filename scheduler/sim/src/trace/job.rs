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

    /// The trace without jobs that exceed a limit.
    #[must_use]
    pub fn within(mut self, limits: JobLimits) -> Trace {
        let milli = limits.devices.map(|devices| u64::from(devices) * 1_000);
        self.jobs.retain(|job| {
            limits.duration.is_none_or(|longest| job.duration <= longest)
                && milli.is_none_or(|most| job.devices_milli <= most)
        });
        self
    }

    /// Time from the first to the last submission.
    #[must_use]
    pub fn length(&self) -> Span {
        self.jobs.last().map_or(Span::ZERO, |job| job.submitted)
    }
}
