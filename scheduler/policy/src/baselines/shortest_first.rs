//! Orders by what is expected of a job at its best place: the shortest or the smallest first.
//!
//! A runtime that was expected too short or too long is never corrected: a job keeps its place in line.

use crate::{JobOrder, PendingJob, Profile};

/// The shortest expected runtime first (`n^_i * alpha_i^min`): the spec's WCS-Duration, and strictly SPJF.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ShortestDuration;

impl JobOrder for ShortestDuration {
    fn measure(&self, _: &PendingJob, profile: &Profile) -> u128 {
        profile.runtime.as_micros().into()
    }
}

/// The smallest expected work first (`g_i * n^_i * alpha_i^min`): WCS-Workload.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SmallestWork;

impl JobOrder for SmallestWork {
    fn measure(&self, _: &PendingJob, profile: &Profile) -> u128 {
        profile.work()
    }
}
