//! What agents are measured against in training.

use cohabit_types::Time;

/// The teacher's run of the same jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct RewardBaseline {
    /// T0: the mean ideal run time of the jobs, in seconds.
    pub mean_seconds: f64,
    /// N*(t): how many jobs are in the teacher's system from each time on, in order.
    pub jobs: Vec<(Time, u32)>,
}
