//! The resource contention degree (RCD) of ISACPP: how much less of a GPU's resources a job gets beside
//! others than alone.

use crate::interference::{ColocationEstimate, SetMember};

/// How the ratios of the three resources become one number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentionDegree {
    /// Their sum, as in the released code: 3 without contention.
    Sum,
    /// Their mean minus 1: 0 without contention.
    #[default]
    MeanMinusOne,
}

impl ContentionDegree {
    /// The degree of one member. The predictor gives memory and utilization; bandwidth to the host falls as
    /// the job slows down, and so does whatever the predictor leaves out, except memory, which is not
    /// divided among jobs.
    pub(super) fn degree(self, member: &SetMember, beside: &ColocationEstimate) -> f64 {
        let memory = ratio(member.solo.memory, beside.memory).unwrap_or(1.0);
        let link = beside.slowdown;
        let utilization = ratio(member.solo.utilization, beside.utilization).unwrap_or(beside.slowdown);
        let sum = memory + link + utilization;
        match self {
            ContentionDegree::Sum => sum,
            ContentionDegree::MeanMinusOne => sum / 3.0 - 1.0,
        }
    }
}

fn ratio(alone: Option<f64>, beside: Option<f64>) -> Option<f64> {
    let ratio = alone? / beside?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interference::SoloMetrics;

    fn member() -> SetMember {
        let solo = SoloMetrics { memory: Some(8e9), utilization: Some(0.6), ..SoloMetrics::default() };
        SetMember { solo, ..SetMember::default() }
    }

    #[test]
    fn no_contention_is_three_by_the_sum_and_zero_by_the_mean() {
        let beside = ColocationEstimate::slowed(&member(), 1.0, 0.0);
        assert_eq!(ContentionDegree::Sum.degree(&member(), &beside), 3.0);
        assert_eq!(ContentionDegree::MeanMinusOne.degree(&member(), &beside), 0.0);
    }

    #[test]
    fn each_resource_counts_by_the_ratio_of_what_is_left() {
        let slowed = ColocationEstimate::slowed(&member(), 2.0, 0.0);
        let beside = ColocationEstimate { memory: Some(16e9), utilization: Some(0.2), ..slowed };
        assert!((ContentionDegree::Sum.degree(&member(), &beside) - (0.5 + 2.0 + 3.0)).abs() < 1e-12);
    }

    #[test]
    fn an_unmeasured_resource_is_assumed_to_fall_with_the_speed() {
        let unknown = SetMember::default();
        let nothing = ColocationEstimate {
            memory: None,
            utilization: Some(0.0),
            ..ColocationEstimate::slowed(&unknown, 1.5, 0.0)
        };
        assert_eq!(ContentionDegree::Sum.degree(&unknown, &nothing), 1.0 + 1.5 + 1.5);
    }
}
