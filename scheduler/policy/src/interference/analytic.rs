//! An analytic slowdown model as a predictor, for jobs of which only the utilization alone on a GPU is
//! known.

use super::{
    ColocationEstimate, ColocationSet, Interference, MaxMinSharing, SetMember, SlowdownModel,
    UNKNOWN_UNCERTAINTY,
};

/// A slowdown model as a predictor: it needs to know how busy each job keeps the GPU alone.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct AnalyticInterference<L = MaxMinSharing> {
    /// The model.
    pub law: L,
}

/// How well the model fits published measurements: standard deviation of the logarithm.
const UNCERTAINTY: f64 = 0.05;

impl<L: SlowdownModel> Interference for AnalyticInterference<L> {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        sets.iter().map(|set| self.of_set(set)).collect()
    }
}

impl<L: SlowdownModel> AnalyticInterference<L> {
    fn of_set(&self, set: &ColocationSet) -> Vec<ColocationEstimate> {
        if let [member] = &set.members[..] {
            return vec![ColocationEstimate::alone(member)];
        }
        let busy: Vec<f64> = set.members.iter().map(SetMember::busy).collect();
        let all_measured = set.members.iter().all(|member| member.solo.utilization.is_some());
        let uncertainty = if all_measured { UNCERTAINTY } else { UNKNOWN_UNCERTAINTY };
        let fits = set.memory_filled().map_or(1.0, |filled| if filled > 1.0 { 0.0 } else { 1.0 });
        let slowdowns = self.law.slowdowns(&busy);
        let member = |(member, slowdown)| ColocationEstimate {
            fits,
            ..ColocationEstimate::slowed(member, slowdown, uncertainty)
        };
        set.members.iter().zip(slowdowns).map(member).collect()
    }
}
