//! The learning estimator: random forests for run time and iterations, from what recurring jobs took.
//!
//! Fitting is separate from estimating. [`Estimator::learn`] does both, for simulations and at startup; a
//! live head remembers ended jobs at once, fits a [`ForestFit`] on another thread, and adopts the result.

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_types::{Estimate, Span};

use crate::quantity::Quantity;
use crate::quantity_estimator::{CompletedFit, PendingFit, QuantityEstimator};

/// No estimate is shorter than this.
const SHORTEST: Span = Span::from_millis(1);

/// Estimates a job from its features and from similar jobs; section 4 of the project's A-SRPT notes.
///
/// A number of iterations that the user has stated is never replaced.
#[derive(Debug)]
pub struct Forest {
    runtime: QuantityEstimator,
    iterations: QuantityEstimator,
}

/// A forest that is due to be fitted; it may be sent to another thread.
#[derive(Debug, Clone)]
pub struct ForestFit {
    runtime: Option<PendingFit>,
    iterations: Option<PendingFit>,
}

/// The result of a fit.
#[derive(Debug)]
pub struct FittedForest {
    runtime: Option<CompletedFit>,
    iterations: Option<CompletedFit>,
}

impl Default for Forest {
    fn default() -> Forest {
        Forest {
            runtime: QuantityEstimator::of(Quantity::Runtime),
            iterations: QuantityEstimator::of(Quantity::Iterations),
        }
    }
}

impl Forest {
    /// Remembers ended jobs, the oldest first, without fitting.
    pub fn remember(&mut self, done: &[CompletedRun]) {
        for job in done {
            self.runtime.remember(job);
            self.iterations.remember(job);
        }
    }

    /// The fit that is due, if any.
    #[must_use]
    pub fn training(&self) -> Option<ForestFit> {
        let training =
            ForestFit { runtime: self.runtime.pending_fit(), iterations: self.iterations.pending_fit() };
        (training.runtime.is_some() || training.iterations.is_some()).then_some(training)
    }

    /// Uses a fitted forest from now on.
    pub fn adopt(&mut self, fitted: FittedForest) {
        if let Some(learned) = fitted.runtime {
            self.runtime.adopt(learned);
        }
        if let Some(learned) = fitted.iterations {
            self.iterations.adopt(learned);
        }
    }
}

impl ForestFit {
    /// Fits the forests; takes some tens of milliseconds for each quantity. The same input gives the same
    /// result.
    #[must_use]
    pub fn fit(self) -> FittedForest {
        FittedForest {
            runtime: self.runtime.map(PendingFit::fit),
            iterations: self.iterations.map(PendingFit::fit),
        }
    }
}

impl Estimator for Forest {
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
        let Some(runtime) = self.runtime.estimate(job) else { return job.user_estimate() };
        let learned = || self.iterations.estimate(job).map(|it| it.value.round().max(1.0) as u64);
        Some(Estimate {
            iterations: job.iterations.or_else(learned),
            runtime: Some(Span::from_secs_f64(runtime.value).max(SHORTEST)),
            basis: runtime.basis,
            ..Estimate::default()
        })
    }

    fn learn(&mut self, done: &[CompletedRun]) {
        self.remember(done);
        if let Some(training) = self.training() {
            self.adopt(training.fit());
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Time;

    use super::*;

    fn job(number: u64, iterations: Option<u64>) -> JobFeatures {
        JobFeatures {
            user: "ada".into(),
            group: "resnet".into(),
            submitted_at: Time::EPOCH + Span::from_secs(number * 1_000),
            devices_milli: 1_000,
            iterations,
            ..JobFeatures::default()
        }
    }

    /// Jobs that run for ten minutes and report 6,000 steps.
    fn done(numbers: std::ops::Range<u64>) -> Vec<CompletedRun> {
        let runtime = Span::from_secs(600);
        let end = |features: JobFeatures| CompletedRun {
            ended_at: features.submitted_at + runtime,
            features,
            runtime,
            iterations: Some(6_000),
        };
        numbers.map(|number| end(job(number, None))).collect()
    }

    #[test]
    fn run_time_and_iterations_are_learned_and_stated_iterations_kept() {
        let mut forest = Forest::default();
        assert_eq!(forest.estimate(&job(9, None)), None);
        assert_eq!(forest.estimate(&job(9, Some(5))).unwrap().iterations, Some(5));
        forest.learn(&done(0..1));
        let estimate = forest.estimate(&job(1, None)).unwrap();
        assert_eq!((estimate.iterations, estimate.runtime), (Some(6_000), Some(Span::from_secs(600))));
        assert_eq!(estimate.basis, "the last job of 'resnet' by ada");
        forest.learn(&done(1..1_000));
        let estimate = forest.estimate(&job(1_000, Some(5))).unwrap();
        assert_eq!((estimate.iterations, estimate.runtime), (Some(5), Some(Span::from_secs(600))));
        assert_eq!(estimate.basis, "the forest, from 1,000 jobs, 1,000 of them of its group");
    }

    #[test]
    fn a_forest_fitted_on_another_thread_estimates_the_same() {
        let mut at_once = Forest::default();
        at_once.learn(&done(0..300));
        let mut apart = Forest::default();
        apart.remember(&done(0..300));
        let training = apart.training().unwrap();
        let fitted = std::thread::spawn(move || training.fit()).join().unwrap();
        assert!(apart.estimate(&job(300, None)).unwrap().basis.contains("median"));
        apart.adopt(fitted);
        assert!(apart.training().is_none());
        assert_eq!(apart.estimate(&job(300, None)), at_once.estimate(&job(300, None)));
    }

    #[test]
    fn no_estimate_is_zero() {
        let mut forest = Forest::default();
        let ended = |it| CompletedRun { runtime: Span::ZERO, iterations: Some(0), ..it };
        forest.learn(&done(0..1).into_iter().map(ended).collect::<Vec<_>>());
        let estimate = forest.estimate(&job(1, None)).unwrap();
        assert_eq!((estimate.runtime, estimate.iterations), (Some(SHORTEST), Some(1)));
    }
}
