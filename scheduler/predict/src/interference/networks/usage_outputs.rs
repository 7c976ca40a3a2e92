//! The outputs of a network for the memory and the utilization of co-located members: which of them a table
//! can train, and how they change an estimate.
//!
//! An output is the logarithm of what a member uses, relative to what the base model expects: a network that
//! has learned nothing predicts what its base model does.

use cohabit_policy::interference::{ColocationEstimate, MeasuredMember, MeasuredSet, SetOutcome};
use serde::{Deserialize, Serialize};

use crate::interference::usage_source::{UsageSource, UsageSources};

/// The outputs that a network has, in their order; none if the table has neither quantity.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct UsageOutputs(Vec<UsageOutput>);

/// One output.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct UsageOutput {
    quantity: UsageQuantity,
    /// The range of the training data. Predictions are clipped to it: beyond it, nothing was measured.
    least: f64,
    most: f64,
}

/// What a member uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum UsageQuantity {
    #[serde(rename = "memory")]
    Memory,
    #[serde(rename = "utilisation")]
    Utilization,
}

/// A measured set with the estimates of the base model for its members; none if there is no base model.
pub(super) type ExpectedSet<'a> = (&'a [ColocationEstimate], &'a MeasuredSet);

impl UsageOutputs {
    /// The outputs for the quantities that some member has.
    pub(super) fn learn(sets: &[ExpectedSet<'_>]) -> UsageOutputs {
        let output = |quantity: UsageQuantity| {
            let ratio = |(expected, observed)| quantity.ln_ratio(expected, observed);
            let ratios: Vec<f64> = sets.iter().flat_map(|set| members(*set)).filter_map(ratio).collect();
            let least = ratios.iter().copied().reduce(f64::min)?;
            let most = ratios.iter().copied().reduce(f64::max)?;
            Some(UsageOutput { quantity, least, most })
        };
        UsageOutputs(
            [UsageQuantity::Memory, UsageQuantity::Utilization].into_iter().filter_map(output).collect(),
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of outputs.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The measured value of each output for each member of a set that ran.
    pub(super) fn measured(&self, set: ExpectedSet<'_>) -> Vec<Vec<Option<f64>>> {
        let of_member = |(expected, observed): (&ColocationEstimate, &MeasuredMember)| {
            self.0.iter().map(|output| output.quantity.ln_ratio(expected, observed)).collect()
        };
        members(set).map(of_member).collect()
    }

    /// The estimate with what the outputs predict, relative to the base model.
    pub(super) fn apply(
        &self,
        base: &ColocationEstimate,
        outputs: &[f64],
        mut estimate: ColocationEstimate,
    ) -> ColocationEstimate {
        for (UsageOutput { quantity, least, most }, ln_ratio) in self.0.iter().zip(outputs) {
            let ratio = ln_ratio.max(*least).min(*most).exp();
            match quantity {
                UsageQuantity::Memory => estimate.memory = base.memory.map(|memory| memory * ratio),
                UsageQuantity::Utilization => {
                    estimate.utilization = base.utilization.map(|busy| (busy * ratio).min(1.0));
                }
            }
        }
        estimate
    }

    /// The output for memory, if there is one.
    pub(super) fn of_memory(&self) -> Option<usize> {
        self.position(UsageQuantity::Memory)
    }

    /// Where the predictions of a network with these outputs come from.
    pub(super) fn sources(&self) -> UsageSources {
        let source = |quantity| match self.position(quantity) {
            Some(_) => UsageSource::Learned,
            None => UsageSource::NotMeasured,
        };
        UsageSources {
            memory: source(UsageQuantity::Memory),
            utilization: source(UsageQuantity::Utilization),
        }
    }

    fn position(&self, quantity: UsageQuantity) -> Option<usize> {
        self.0.iter().position(|output| output.quantity == quantity)
    }
}

impl UsageQuantity {
    /// The logarithm of the measured value relative to the expected one; `None` if one of them is unknown or
    /// 0.
    fn ln_ratio(self, expected: &ColocationEstimate, observed: &MeasuredMember) -> Option<f64> {
        let (expected, observed) = match self {
            UsageQuantity::Memory => (expected.memory?, observed.memory?),
            UsageQuantity::Utilization => (expected.utilization?, observed.utilization?),
        };
        (expected > 0.0 && observed > 0.0).then(|| (observed / expected).ln())
    }
}

/// The members of a set that ran, each with its estimate and its measurement.
fn members<'a>(
    (expected, measured): ExpectedSet<'a>,
) -> impl Iterator<Item = (&'a ColocationEstimate, &'a MeasuredMember)> {
    let observed = match &measured.outcome {
        SetOutcome::Ran(observed) => &observed[..],
        SetOutcome::DidNotFit => &[],
    };
    expected.iter().zip(observed)
}
