//! What an alarm is set for.

use cohabit_types::{JobId, NodeId};
use serde::{Deserialize, Serialize};

use crate::door::DeadlineKind;

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Alarm {
    /// A node may have been unreachable for too long.
    Node(NodeId),
    /// A job may have become eligible.
    Job(JobId),
    /// A node that had no room was left alone for long enough.
    Pause(NodeId),
}

impl Alarm {
    pub(crate) const fn why(self) -> DeadlineKind {
        match self {
            Alarm::Node(node) => DeadlineKind::NodeLost(node),
            Alarm::Job(job) => DeadlineKind::Eligible(job),
            Alarm::Pause(node) => DeadlineKind::NodeTried(node),
        }
    }
}
