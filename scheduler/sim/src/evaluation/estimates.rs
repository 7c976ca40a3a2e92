//! Where the estimates of an evaluation come from, and how good they were.
//!
//! It stands where the live head's shell does: what it says of a job is frozen at the submission, and it
//! learns from ended jobs what a live head would know of them.

use std::collections::BTreeSet;

use cohabit_policy::{CompletedRun, Estimator, JobFeatures, UNKNOWN_RUNTIME};
use cohabit_predict::{Accuracy, AccuracyAccumulator, Constant, Forest, GroupMean, RecentMedian, Recurrence};
use cohabit_types::{Estimate, JobSpec, Span, Time};

use super::noise;
use crate::head_hooks::truth;

/// Where estimates come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EstimatorKind {
    /// The truth.
    Oracle,
    /// The truth times a log-normal error, whose logarithm has this standard deviation.
    Noisy(f64),
    /// The same for every job.
    Constant,
    /// The median of the last jobs of the same user, group and size.
    RecentMedian,
    /// The mean of all jobs of the same user and group.
    GroupMean,
    /// Random forests, fitted again and again to what has ended.
    Forest,
}

/// Gives estimates, and keeps the score.
pub(super) struct EvaluationEstimator {
    source: Source,
    /// Users and groups of which a job has ended.
    ended: BTreeSet<(String, String)>,
    tally: AccuracyAccumulator,
}

enum Source {
    /// The truth with errors of this size.
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
        EvaluationEstimator { source, ended: BTreeSet::new(), tally: AccuracyAccumulator::default() }
    }

    /// What is expected of this job, whose iterations take so many seconds at best.
    pub(super) fn of(
        &mut self,
        index: usize,
        spec: &JobSpec,
        features: &JobFeatures,
        pace: f64,
    ) -> Option<Estimate> {
        let truth = truth(spec);
        let estimate = match &self.source {
            Source::Truth { seed, sigma } => Some(blurred(&truth, noise::factor(*seed, index, *sigma))),
            Source::Learned(estimator) => estimator.estimate(features),
        };
        let seconds = |estimate: &Estimate| match (estimate.iterations, estimate.runtime) {
            (Some(iterations), _) if pace > 0.0 => Some(iterations as f64 * pace),
            (_, runtime) => runtime.map(Span::as_secs_f64),
        };
        let known = self.ended.contains(&(features.user.clone(), features.group.clone()));
        let recurrence = if known { Recurrence::Recurring } else { Recurrence::FirstSeen };
        let expected = estimate.as_ref().and_then(seconds);
        self.tally.note(recurrence, expected, seconds(&truth).unwrap_or_default());
        estimate
    }

    /// A job has ended well.
    pub(super) fn learn(&mut self, features: JobFeatures, ended_at: Time, runtime: Span, iterations: u64) {
        self.ended.insert((features.user.clone(), features.group.clone()));
        if let Source::Learned(estimator) = &mut self.source {
            estimator.learn(&[CompletedRun { features, ended_at, runtime, iterations: Some(iterations) }]);
        }
    }

    pub(super) fn accuracy(&self) -> Accuracy {
        self.tally.accuracy()
    }
}

/// The truth, wrong by this factor.
fn blurred(truth: &Estimate, factor: f64) -> Estimate {
    Estimate {
        iterations: truth.iterations.map(|it| ((it as f64 * factor).round() as u64).max(1)),
        runtime: truth.runtime.map(|it| Span::from_secs_f64(it.as_secs_f64() * factor)),
        basis: if factor == 1.0 { "the truth".into() } else { format!("the truth times {factor:.3}") },
        ..Estimate::default()
    }
}
