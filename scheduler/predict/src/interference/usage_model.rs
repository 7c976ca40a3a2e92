//! The memory and utilization of co-located jobs, from what they use alone.

use cohabit_policy::interference::{ColocationEstimate, ColocationSet, MeasuredSet, SetOutcome};
use serde::{Deserialize, Serialize};

/// Relates the use of co-located jobs to what they use alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct UsageModel {
    /// Co-located memory as a fraction of the memory alone.
    memory: f64,
    #[serde(rename = "utilisation")]
    utilization: UtilizationScope,
}

/// What the utilization of a member means in a table, with a factor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum UtilizationScope {
    /// The utilization of its own processes: the utilization alone, divided by the slowdown.
    #[serde(rename = "OfMember")]
    Member(f64),
    /// The utilization of the whole GPU: the sum over its members.
    #[serde(rename = "OfGpu")]
    Gpu(f64),
}

impl Default for UsageModel {
    fn default() -> UsageModel {
        UsageModel { memory: 1.0, utilization: UtilizationScope::Member(1.0) }
    }
}

impl UsageModel {
    /// Learns the factors, and which utilization a table gives.
    pub(crate) fn learn(measured: &[MeasuredSet]) -> UsageModel {
        let (mut memory, mut of_member, mut of_gpu) = (Vec::new(), Vec::new(), Vec::new());
        for it in measured.iter().filter(|it| it.set.members.len() > 1) {
            let SetOutcome::Ran(observed) = &it.outcome else { continue };
            for (member, observed) in it.set.members.iter().zip(observed) {
                memory.extend(ln_ratio(observed.memory, member.solo.memory));
                let own = member.solo.utilization.map(|alone| alone / observed.slowdown.max(1.0));
                of_member.extend(ln_ratio(observed.utilization, own));
                of_gpu.extend(ln_ratio(observed.utilization, busy(&it.set)));
            }
        }
        let utilization = match deviation(&of_gpu) < deviation(&of_member) {
            true => UtilizationScope::Gpu(factor(&of_gpu)),
            false => UtilizationScope::Member(factor(&of_member)),
        };
        UsageModel { memory: factor(&memory), utilization }
    }

    /// Adds memory and utilization to the estimate for a member of a set.
    pub(crate) fn complete(
        &self,
        set: &ColocationSet,
        member: usize,
        predicted: ColocationEstimate,
    ) -> ColocationEstimate {
        let alone = &set.members[member].solo;
        let utilization = match self.utilization {
            UtilizationScope::Member(factor) => {
                alone.utilization.map(|alone| factor * alone / predicted.slowdown)
            }
            UtilizationScope::Gpu(factor) => busy(set).map(|busy| factor * busy),
        };
        ColocationEstimate {
            memory: alone.memory.map(|alone| self.memory * alone),
            utilization: utilization.map(|busy| busy.min(1.0)),
            ..predicted
        }
    }
}

/// The utilization of the GPU if the members did not slow each other, at most 1.
fn busy(set: &ColocationSet) -> Option<f64> {
    let all: Option<f64> = set.members.iter().map(|member| member.solo.utilization).sum();
    all.map(|busy| busy.min(1.0))
}

fn ln_ratio(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    let (one, other) = one.zip(other)?;
    (one > 0.0 && other > 0.0).then(|| (one / other).ln())
}

/// The median ratio; 1 without observations.
fn factor(ln_ratios: &[f64]) -> f64 {
    let mut sorted = ln_ratios.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).map_or(1.0, |ln| ln.exp())
}

/// Mean absolute deviation from the median.
fn deviation(ln_ratios: &[f64]) -> f64 {
    let centre = factor(ln_ratios).ln();
    ln_ratios.iter().map(|ratio| (ratio - centre).abs()).sum::<f64>() / ln_ratios.len().max(1) as f64
}
