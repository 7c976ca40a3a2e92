//! The estimator that expects the same of every job: what an experiment compares others with.

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_types::{Estimate, Span};

/// Expects the same of every job, but for the iterations that a user tells.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// How long each runs.
    pub runtime: Option<Span>,
    /// How many iterations each takes.
    pub iterations: Option<u64>,
}

impl Estimator for Constant {
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
        Some(Estimate {
            iterations: job.iterations.or(self.iterations),
            runtime: self.runtime,
            basis: "what is expected of every job".to_owned(),
            ..Estimate::default()
        })
    }

    fn learn(&mut self, _: &[CompletedRun]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_user_tells_differs() {
        let constant = Constant { runtime: Some(Span::from_secs(60)), iterations: Some(1) };
        let said = |iterations| {
            let estimate = constant.estimate(&JobFeatures { iterations, ..JobFeatures::default() }).unwrap();
            (estimate.runtime, estimate.iterations)
        };
        assert_eq!(said(None), (Some(Span::from_secs(60)), Some(1)));
        assert_eq!(said(Some(7)), (Some(Span::from_secs(60)), Some(7)));
    }
}
