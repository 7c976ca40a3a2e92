//! Models that work with logarithms of slowdowns: their predictions and the resulting estimate.

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, MeasuredMember, MeasuredSet, SetMember, SetOutcome,
    UNKNOWN_UNCERTAINTY,
};
use serde::{Deserialize, Serialize};

/// A prediction of the logarithm of a slowdown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogSlowdown {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// What a measurement says about the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Censoring {
    /// The value itself.
    Exact,
    /// That the value is at most this: a measured slowdown of 1 says nothing about how little a job is
    /// affected.
    AtMost,
}

/// How far the estimate leans from the median (0) to the value with the least relative error (1):
/// overestimates have larger relative errors.
const CAUTION: f64 = 0.5;
/// A censored value is taken to lie at most this far below its bound.
const MAX_BELOW_BOUND: f64 = 0.4;

impl LogSlowdown {
    /// The estimate for a member with this prediction.
    pub(crate) fn answer(self, member: &SetMember) -> ColocationEstimate {
        let LogSlowdown { mean, variance } = self;
        ColocationEstimate::slowed(member, mean.exp(), variance.sqrt().min(UNKNOWN_UNCERTAINTY))
    }

    /// The prediction shifted to the value with a small relative error.
    pub(crate) fn with_caution(self) -> LogSlowdown {
        LogSlowdown { mean: self.mean - CAUTION * self.variance, ..self }
    }

    /// Combines the pairs of a member of a larger set: the costs of its partners add up.
    pub(crate) fn of_pairs(pairs: impl Iterator<Item = LogSlowdown>) -> LogSlowdown {
        let (mut excess, mut variance) = (0.0, 0.0);
        for pair in pairs {
            excess += pair.mean.max(0.0).exp_m1();
            variance += pair.variance;
        }
        LogSlowdown { mean: excess.ln_1p(), variance }
    }
}

impl Censoring {
    /// Whether a measured slowdown is censored.
    pub(crate) fn of(observed: &MeasuredMember) -> Censoring {
        if observed.slowdown > 1.0 { Censoring::Exact } else { Censoring::AtMost }
    }

    /// The target for a measurement read as `value`, for which the model without it predicts `predicted`.
    pub(crate) fn learned(self, value: f64, predicted: f64) -> f64 {
        match self {
            Censoring::Exact => value,
            Censoring::AtMost => predicted.clamp(value - MAX_BELOW_BOUND, value),
        }
    }
}

/// Every member of a set of two or more that ran.
pub(crate) fn ran(
    measured: &[MeasuredSet],
) -> impl Iterator<Item = (&ColocationSet, usize, &MeasuredMember)> {
    measured.iter().filter(|it| it.set.members.len() > 1).flat_map(|it| {
        let observed = match &it.outcome {
            SetOutcome::Ran(observed) => &observed[..],
            SetOutcome::DidNotFit => &[],
        };
        observed.iter().enumerate().map(move |(member, observed)| (&it.set, member, observed))
    })
}

/// All members but this one.
pub(crate) fn others<T>(members: &[T], member: usize) -> impl Iterator<Item = &T> {
    members.iter().enumerate().filter(move |(at, _)| *at != member).map(|(_, other)| other)
}
