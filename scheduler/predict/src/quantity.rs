//! The estimated quantities: run time and number of iterations.

use cohabit_policy::CompletedRun;
use cohabit_types::Estimate;

/// An estimated quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Run time in seconds.
    Runtime,
    /// Training iterations.
    Iterations,
}

impl Quantity {
    /// The true value of a job in seconds or iterations, if it is known.
    #[must_use]
    pub fn observed_value(self, job: &CompletedRun) -> Option<f64> {
        match self {
            Quantity::Runtime => Some(job.runtime.as_secs_f64()),
            Quantity::Iterations => job.iterations.map(|count| count as f64),
        }
    }

    /// The estimated value in seconds or iterations.
    #[must_use]
    pub fn estimated_value(self, estimate: &Estimate) -> Option<f64> {
        match self {
            Quantity::Runtime => estimate.runtime.map(|span| span.as_secs_f64()),
            Quantity::Iterations => estimate.iterations.map(|count| count as f64),
        }
    }
}
