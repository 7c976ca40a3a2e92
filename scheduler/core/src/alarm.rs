//! What the alarms of the head are set for.

use cohabit_types::{JobId, NodeId};

use crate::interface::DeadlineKind;

/// What has to be looked at when an alarm goes off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A node may have been unreachable for too long.
    NodeLost(NodeId),
    /// A job may have become eligible.
    JobEligible(JobId),
    /// A node on which ranks could not start may be tried again.
    NodeRetry(NodeId),
    /// The jobs on a drained node may have to be queued again.
    DrainDeadline(NodeId),
    /// A placed job may have to leave nodes that will be reserved.
    JobClosing(JobId),
    /// An interactive job may have done nothing for as long as it may at most.
    JobIdle(JobId),
    /// The reservation with this number may begin or end.
    Reservation(u64),
}

impl Alarm {
    pub(crate) const fn kind(self) -> DeadlineKind {
        match self {
            Alarm::NodeLost(node) => DeadlineKind::NodeLost(node),
            Alarm::JobEligible(job) => DeadlineKind::JobEligible(job),
            Alarm::NodeRetry(node) => DeadlineKind::NodeRetry(node),
            Alarm::DrainDeadline(node) => DeadlineKind::DrainDeadline(node),
            Alarm::JobClosing(job) => DeadlineKind::JobClosing(job),
            Alarm::JobIdle(job) => DeadlineKind::JobIdle(job),
            Alarm::Reservation(number) => DeadlineKind::Reservation(number),
        }
    }
}
