//! Whose fault it is that an attempt failed, and so what the failure costs the job.

use cohabit_types::{Outcome, StartFailure, StopReason};

use super::observed::ObservedAttempt;

/// The cause of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// The job itself: costs a retry.
    Own,
    /// The cluster: counts towards the limit of node failures.
    Cluster,
    /// A machine without disk space: costs nothing.
    NoSpace,
    /// The order was lost with a head: costs nothing.
    LostOrder,
}

impl FailureCause {
    /// The cause; `None` if the attempt succeeded or was stopped on request.
    pub(super) fn of(attempt: &ObservedAttempt, first_bad: Option<&Outcome>) -> Option<FailureCause> {
        match attempt.stopped {
            Some(
                StopReason::Cancelled
                | StopReason::Killed
                | StopReason::ApplicationEnded
                | StopReason::TimeLimit
                | StopReason::Requeued
                | StopReason::Preempted
                | StopReason::Reclaimed
                | StopReason::Idle,
            ) => None,
            Some(StopReason::MpsFault | StopReason::GpuMemory) => Some(FailureCause::Own),
            Some(
                StopReason::Superseded
                | StopReason::Orphaned
                | StopReason::MpsFaultVictim
                | StopReason::DeviceLost
                | StopReason::Unenforced
                | StopReason::Stalled,
            ) => Some(FailureCause::Cluster),
            Some(StopReason::GangBroken) | None => first_bad.map(|outcome| match outcome {
                Outcome::Lost(_)
                | Outcome::NotStarted(
                    StartFailure::PortTaken(_) | StartFailure::DeviceFenced(_) | StartFailure::Unenforced(_),
                ) => FailureCause::Cluster,
                Outcome::NotStarted(StartFailure::NodeProblem(_)) => FailureCause::NoSpace,
                Outcome::NotStarted(StartFailure::OrderLost) => FailureCause::LostOrder,
                Outcome::Exited(_)
                | Outcome::Signalled(_)
                | Outcome::NotStarted(_)
                | Outcome::OutOfGpuMemory { .. }
                | Outcome::OutOfMemory { .. } => FailureCause::Own,
            }),
        }
    }
}
