//! What is estimated of a job: how long it runs, or how many iterations it takes.

use cohabit_policy::CompletedRun;
use cohabit_types::Estimate;

/// What is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Seconds that it runs.
    Runtime,
    /// Training iterations.
    Iterations,
}

impl Quantity {
    /// What a job really took, where it is known: seconds or iterations.
    #[must_use]
    pub fn observed_value(self, job: &CompletedRun) -> Option<f64> {
        match self {
            Quantity::Runtime => Some(job.runtime.as_secs_f64()),
            Quantity::Iterations => job.iterations.map(|count| count as f64),
        }
    }

    /// What an estimate says: seconds or iterations.
    #[must_use]
    pub fn estimated_value(self, estimate: &Estimate) -> Option<f64> {
        match self {
            Quantity::Runtime => estimate.runtime.map(|span| span.as_secs_f64()),
            Quantity::Iterations => estimate.iterations.map(|count| count as f64),
        }
    }
}
