//! The estimator that gives every job the same estimate: a baseline for experiments.

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_types::{Estimate, Span};

/// Gives every job the same estimate, except for iterations that the user has stated.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// The estimated run time.
    pub runtime: Option<Span>,
    /// The estimated number of iterations.
    pub iterations: Option<u64>,
}

impl Estimator for Constant {
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
        Some(Estimate {
            iterations: job.iterations.or(self.iterations),
            runtime: self.runtime,
            basis: "the same value for every job".to_owned(),
            ..Estimate::default()
        })
    }

    fn learn(&mut self, _: &[CompletedRun]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_iterations_stated_by_the_user_differ() {
        let constant = Constant { runtime: Some(Span::from_secs(60)), iterations: Some(1) };
        let predicted = |iterations| {
            let estimate = constant.estimate(&JobFeatures { iterations, ..JobFeatures::default() }).unwrap();
            (estimate.runtime, estimate.iterations)
        };
        assert_eq!(predicted(None), (Some(Span::from_secs(60)), Some(1)));
        assert_eq!(predicted(Some(7)), (Some(Span::from_secs(60)), Some(7)));
    }
}
