//! What a job has had of the cluster: how long it held devices in all its attempts, and how far that took
//! it.
//!
//! An attempt counts from its placement until the policy learns of its end. A stopped job continues from
//! its checkpoint.

use cohabit_types::{Span, Time};

use crate::RunPhase;

/// The service that a job has attained.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttainedService {
    /// How long it held its devices.
    pub(crate) held: Span,
    /// The time that its best placement would have needed for the same work.
    pub(crate) progress: Span,
}

/// An attempt that runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunningAttempt {
    pub(super) since: Time,
    /// Of its placement against the best one, as a factor.
    pub(super) slowdown: f64,
    pub(super) phase: RunPhase,
}

impl AttainedService {
    /// The sum of this service and what the attempt attained until now.
    pub(super) fn plus(self, run: &RunningAttempt, now: Time) -> AttainedService {
        let held = now.since(run.since);
        let progress = Span::from_secs_f64(held.as_secs_f64() / run.slowdown);
        AttainedService { held: self.held + held, progress: self.progress + progress }
    }
}
