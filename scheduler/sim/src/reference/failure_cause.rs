//! Whose fault it is that an attempt failed, and so what the failure costs the job.

use cohabit_types::{Outcome, StartFailure, StopReason};

use super::observed::ObservedAttempt;

/// Whose fault it is that an attempt did not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// The job's: costs a retry.
    Own,
    /// Not the job's: tries the cluster's patience.
    Cluster,
    /// A machine had no room: costs nothing.
    Room,
    /// Its order died with a head: costs nothing.
    LostOrder,
}

impl FailureCause {
    /// None where it ended well, or somebody wanted it to end.
    pub(super) fn of(attempt: &ObservedAttempt, first_bad: Option<&Outcome>) -> Option<FailureCause> {
        match attempt.stopped {
            Some(
                StopReason::Cancelled | StopReason::TimeLimit | StopReason::Requeued | StopReason::Preempted,
            ) => None,
            Some(StopReason::MpsFault | StopReason::GpuMemory) => Some(FailureCause::Own),
            Some(
                StopReason::Superseded
                | StopReason::Orphaned
                | StopReason::MpsFaultVictim
                | StopReason::DeviceLost
                | StopReason::Unenforced,
            ) => Some(FailureCause::Cluster),
            Some(StopReason::GangBroken) | None => first_bad.map(|outcome| match outcome {
                Outcome::Lost(_)
                | Outcome::NotStarted(
                    StartFailure::PortTaken(_) | StartFailure::DeviceFenced(_) | StartFailure::Unenforced(_),
                ) => FailureCause::Cluster,
                Outcome::NotStarted(StartFailure::NodeTrouble(_)) => FailureCause::Room,
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
