//! What a job has had of the cluster: how long it ran over all its attempts, and how far that took it.
//!
//! An attempt counts from its placement to the moment when the policy hears of its end; a job goes on where
//! it was stopped, from its checkpoint.

use cohabit_types::{Span, Time};

use crate::RunPhase;

/// What a job has had so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttainedService {
    /// How long it held its devices.
    pub(crate) held: Span,
    /// How long its best place would have needed for what it did meanwhile.
    pub(crate) progress: Span,
}

/// An attempt that goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunningAttempt {
    pub(super) since: Time,
    /// Of its place, against the best one.
    pub(super) slowdown: f64,
    pub(super) phase: RunPhase,
}

impl AttainedService {
    /// With what this attempt had by then.
    pub(super) fn plus(self, run: &RunningAttempt, now: Time) -> AttainedService {
        let held = now.since(run.since);
        let progress = Span::from_secs_f64(held.as_secs_f64() / run.slowdown);
        AttainedService { held: self.held + held, progress: self.progress + progress }
    }
}
