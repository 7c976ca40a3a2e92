//! One job of a workload.

use cohabit_types::{GpuRequest, JobSpec, Span, Time};

/// A job with all that is true of it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadJob {
    /// When it is submitted.
    pub at: Time,
    /// Who submits it.
    pub user: String,
    /// What is submitted. It does not tell how many iterations there will be, nor how long they take.
    pub spec: JobSpec,
    /// How many there will be.
    pub iterations: u64,
    /// How long each takes at best on this cluster, in seconds.
    pub pace: f64,
    /// Thousandths of devices that it takes where nobody shares them with it.
    pub alone_milli: u64,
}

impl WorkloadJob {
    /// The same job, which shares its device with nobody.
    #[must_use]
    pub fn exclusive(mut self) -> WorkloadJob {
        if let GpuRequest::Part(_) = self.spec.demand.gpus {
            self.spec.demand.gpus = GpuRequest::Whole(1);
        }
        self
    }

    /// How long it runs where it is placed ideally.
    #[must_use]
    pub fn ideal(&self) -> Span {
        Span::from_secs_f64(self.iterations as f64 * self.pace)
    }

    /// Seconds of devices that it takes where nobody shares them with it.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.alone_milli as f64 / 1_000.0 * self.iterations as f64 * self.pace
    }
}
