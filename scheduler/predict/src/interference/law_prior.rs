//! What the law of shared GPUs tells a learned model: something of jobs of which it has seen nothing like.

use cohabit_policy::interference::{ColocationSet, MaxMinSharing, SetMember, SlowdownModel};

use super::log_slowdown::LogSlowdown;

/// How far measured pairs lie from a law with one number for each job: by 10 to 27% on three makes of GPU
/// (section 0.2 of the notes on the papers).
const LAW_DEVIATION: f64 = 0.2;
/// Jobs of which nobody knows how busy they keep a GPU do so for some part of the time between these.
const UNKNOWN: [f64; 2] = [0.4, 1.0];

/// What the law tells of each member of a set; nothing where nobody says of any how busy it keeps a GPU, not
/// even the job itself.
pub(super) fn told(set: &ColocationSet) -> Option<Vec<LogSlowdown>> {
    let told = |member: &SetMember| member.solo.utilisation.or(member.claim);
    let busy = |member: &SetMember| told(member).filter(|busy| (0.0..=1.0).contains(busy));
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
    /// What is believed after both: each counts by how sure it is.
    pub(super) fn and(self, other: LogSlowdown) -> LogSlowdown {
        let weight = self.variance.recip() / (self.variance.recip() + other.variance.recip());
        LogSlowdown {
            mean: weight * self.mean + (1.0 - weight) * other.mean,
            variance: (self.variance.recip() + other.variance.recip()).recip(),
        }
    }
}
