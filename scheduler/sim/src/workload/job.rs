//! One job of a workload.

use cohabit_types::{GpuRequest, JobSpec, Span, Time};

/// A job with its true behaviour.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadJob {
    /// Its line in the trace file, from 1; none for a synthetic job.
    pub line: Option<u64>,
    /// When it is submitted.
    pub at: Time,
    /// The submitting user.
    pub user: String,
    /// What is submitted. It does not contain the number of iterations nor their time.
    pub spec: JobSpec,
    /// The number of iterations.
    pub iterations: u64,
    /// Time of one iteration at the best placement in this cluster, in seconds.
    pub pace: f64,
    /// Devices in thousandths that it takes if nobody shares them.
    pub alone_milli: u64,
}

impl WorkloadJob {
    /// The same job without sharing its device.
    #[must_use]
    pub fn exclusive(mut self) -> WorkloadJob {
        if let GpuRequest::Part(_) = self.spec.demand.gpus {
            self.spec.demand.gpus = GpuRequest::Whole(1);
        }
        self
    }

    /// Run time at the best placement.
    #[must_use]
    pub fn ideal(&self) -> Span {
        Span::from_secs_f64(self.iterations as f64 * self.pace)
    }

    /// Device-seconds that it takes if nobody shares its devices.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.alone_milli as f64 / 1_000.0 * self.iterations as f64 * self.pace
    }
}
