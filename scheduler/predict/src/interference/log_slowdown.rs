//! What models that reason in logarithms believe of a member, and the answer that follows from it.

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, MeasuredMember, MeasuredSet, SetMember, SetOutcome,
    UNKNOWN_UNCERTAINTY,
};
use serde::{Deserialize, Serialize};

/// What is expected of the logarithm of a slowdown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogSlowdown {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// What a measurement tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Censoring {
    /// The value.
    Exact,
    /// That the value is not above this: slowdowns end at 1, however little a job minds its partners.
    AtMost,
}

/// Between the median of what is believed (0) and the answer whose relative error is the least (1): who errs
/// upwards errs by more.
const CAUTION: f64 = 0.5;
/// How far below its bound a value is taken to lie at most.
const MAX_BELOW_BOUND: f64 = 0.4;

impl LogSlowdown {
    /// The answer for a member of whom this is believed.
    pub(crate) fn answer(self, member: &SetMember) -> ColocationEstimate {
        let LogSlowdown { mean, variance } = self;
        ColocationEstimate::slowed(member, mean.exp(), variance.sqrt().min(UNKNOWN_UNCERTAINTY))
    }

    /// The same with the answer whose relative error is small for a mean.
    pub(crate) fn with_caution(self) -> LogSlowdown {
        LogSlowdown { mean: self.mean - CAUTION * self.variance, ..self }
    }

    /// What its pairs tell of a member of a larger set: what each partner costs adds up.
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
    /// Of a slowdown.
    pub(crate) fn of(observed: &MeasuredMember) -> Censoring {
        if observed.slowdown > 1.0 { Censoring::Exact } else { Censoring::AtMost }
    }

    /// What is learned from a measurement that was read as `value`, of which all others say `said`.
    pub(crate) fn learned(self, value: f64, said: f64) -> f64 {
        match self {
            Censoring::Exact => value,
            Censoring::AtMost => said.clamp(value - MAX_BELOW_BOUND, value),
        }
    }
}

/// Every member that ran beside others.
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
