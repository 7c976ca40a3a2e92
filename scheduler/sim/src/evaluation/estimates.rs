//! The estimates of an evaluation, and how accurate they were.
//!
//! It takes the place of the estimator in the head daemon: a job's estimate is fixed at its submission, and
//! the estimator learns from ended jobs what a live head would know of them.

use std::collections::BTreeSet;

use cohabit_policy::{CompletedRun, Estimator, JobFeatures, UNKNOWN_RUNTIME};
use cohabit_predict::{Accuracy, AccuracyAccumulator, Constant, Forest, GroupMean, RecentMedian, Recurrence};
use cohabit_types::{Estimate, JobSpec, Span};

use super::noise;
use crate::head_hooks::true_estimate;

/// The source of the estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EstimatorKind {
    /// The true values.
    Oracle,
    /// The true values times a log-normal error; the argument is the standard deviation of its logarithm.
    Noisy(f64),
    /// The same value for every job.
    Constant,
    /// The median of the last jobs of the same user, group and size.
    RecentMedian,
    /// The mean of all earlier jobs of the same user and group.
    GroupMean,
    /// Random forests, refitted as jobs end.
    Forest,
}

/// Gives estimates and measures their accuracy.
pub(super) struct EvaluationEstimator {
    source: Source,
    /// Users and groups of which a job has ended.
    ended: BTreeSet<(String, String)>,
    accumulator: AccuracyAccumulator,
}

enum Source {
    /// The true values with log-normal errors; sigma is the standard deviation of the logarithm.
    Truth {
        seed: u64,
        sigma: f64,
    },
    Learned(Box<dyn Estimator>),
}

impl EvaluationEstimator {
    pub(super) fn new(kind: EstimatorKind, seed: u64) -> EvaluationEstimator {
        let constant = Constant { runtime: Some(UNKNOWN_RUNTIME), iterations: None };
        let source = match kind {
            EstimatorKind::Oracle => Source::Truth { seed, sigma: 0.0 },
            EstimatorKind::Noisy(sigma) => Source::Truth { seed, sigma },
            EstimatorKind::Constant => Source::Learned(Box::new(constant)),
            EstimatorKind::RecentMedian => Source::Learned(Box::new(RecentMedian::default())),
            EstimatorKind::GroupMean => Source::Learned(Box::new(GroupMean::default())),
            EstimatorKind::Forest => Source::Learned(Box::new(Forest::default())),
        };
        EvaluationEstimator { source, ended: BTreeSet::new(), accumulator: AccuracyAccumulator::default() }
    }

    /// Estimates a job. `pace` is the time of an iteration at the best placement, in seconds.
    pub(super) fn estimate(
        &mut self,
        index: usize,
        spec: &JobSpec,
        features: &JobFeatures,
        pace: f64,
    ) -> Option<Estimate> {
        let truth = true_estimate(spec);
        let estimate = match &self.source {
            Source::Truth { seed, sigma } => {
                Some(scale_estimate(&truth, noise::factor(*seed, index, *sigma)))
            }
            Source::Learned(estimator) => estimator.estimate(features),
        };
        let seconds = |estimate: &Estimate| match (features.iterations, estimate.runtime) {
            (Some(iterations), _) if pace > 0.0 => Some(iterations as f64 * pace),
            (_, runtime) => runtime.map(Span::as_secs_f64),
        };
        let known = self.ended.contains(&(features.user.clone(), features.group.clone()));
        let recurrence = if known { Recurrence::Recurring } else { Recurrence::FirstSeen };
        let expected = estimate.as_ref().and_then(seconds);
        self.accumulator.note(recurrence, expected, seconds(&truth).unwrap_or_default());
        estimate
    }

    /// Learns from a completed job.
    pub(super) fn learn(&mut self, run: CompletedRun) {
        self.ended.insert((run.features.user.clone(), run.features.group.clone()));
        if let Source::Learned(estimator) = &mut self.source {
            estimator.learn(&[run]);
        }
    }

    pub(super) fn accuracy(&self) -> Accuracy {
        self.accumulator.accuracy()
    }
}

/// The true values times this factor.
fn scale_estimate(truth: &Estimate, factor: f64) -> Estimate {
    Estimate {
        iterations: truth.iterations.map(|it| ((it as f64 * factor).round() as u64).max(1)),
        runtime: truth.runtime.map(|it| Span::from_secs_f64(it.as_secs_f64() * factor)),
        basis: if factor == 1.0 { "the truth".into() } else { format!("the truth times {factor:.3}") },
        ..Estimate::default()
    }
}
