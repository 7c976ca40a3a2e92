//! Orders by what is expected of a job at its best placement: the shortest or the smallest first.
//!
//! A wrong estimate is never corrected: a job keeps its place in the queue.

use crate::{JobOrder, PendingJob, Profile};

/// The shortest expected runtime first (`n^_i * alpha_i^min`): WCS-Duration in the A-SRPT paper; with a
/// strict discipline, SPJF.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ShortestDuration;

impl JobOrder for ShortestDuration {
    fn measure(&self, _: &PendingJob, profile: &Profile) -> u128 {
        profile.runtime.as_micros().into()
    }
}

/// The smallest expected work first (`g_i * n^_i * alpha_i^min`): WCS-Workload in the A-SRPT paper.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SmallestWork;

impl JobOrder for SmallestWork {
    fn measure(&self, _: &PendingJob, profile: &Profile) -> u128 {
        profile.work()
    }
}
