//! The law of slowdown as a prior for learned models: it says something about jobs that are unlike all
//! measured ones.

use cohabit_policy::interference::{ColocationSet, MaxMinSharing, SetMember, SlowdownModel};

use super::log_slowdown::LogSlowdown;

/// Deviation of measured pairs from a law with one number for each job: 10 to 27% on three GPU models
/// (section 0.2 of the notes on the papers).
const LAW_DEVIATION: f64 = 0.2;
/// A job of unknown utilization keeps a GPU busy for a fraction of the time between these.
const UNKNOWN: [f64; 2] = [0.4, 1.0];

/// The prediction of the law for each member of a set; `None` if no utilization is known, not even one that a
/// user has claimed.
pub(super) fn predict_by_law(set: &ColocationSet) -> Option<Vec<LogSlowdown>> {
    let utilization = |member: &SetMember| member.solo.utilization.or(member.claim);
    let busy = |member: &SetMember| utilization(member).filter(|busy| (0.0..=1.0).contains(busy));
    if set.members.iter().all(|member| busy(member).is_none()) {
        return None;
    }
    let slowdowns = |unknown: f64| {
        let busy: Vec<f64> = set.members.iter().map(|member| busy(member).unwrap_or(unknown)).collect();
        MaxMinSharing::default().slowdowns(&busy)
    };
    let [lowest, highest] = UNKNOWN.map(slowdowns);
    let member = |(low, high): (&f64, &f64)| LogSlowdown {
        mean: 0.5 * (low.ln() + high.ln()),
        variance: LAW_DEVIATION.powi(2) + (0.5 * (high.ln() - low.ln())).powi(2),
    };
    Some(lowest.iter().zip(&highest).map(member).collect())
}

impl LogSlowdown {
    /// Combines two independent predictions, weighted by their precision.
    pub(super) fn combine(self, other: LogSlowdown) -> LogSlowdown {
        let weight = self.variance.recip() / (self.variance.recip() + other.variance.recip());
        LogSlowdown {
            mean: weight * self.mean + (1.0 - weight) * other.mean,
            variance: (self.variance.recip() + other.variance.recip()).recip(),
        }
    }
}
