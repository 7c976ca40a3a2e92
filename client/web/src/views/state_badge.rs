//! States of jobs and nodes: a word, and a class for its color.

use cohabit_client::types::{Health, JobState, NodeState};

/// A word and the class of its color.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateBadge {
    pub(crate) word: &'static str,
    pub(crate) class: &'static str,
}

impl From<JobState> for StateBadge {
    fn from(state: JobState) -> StateBadge {
        let class = match state {
            JobState::Pending | JobState::Held => "waiting",
            JobState::Running | JobState::Completing => "running",
            JobState::Completed => "good",
            JobState::Cancelled | JobState::Preempted => "caution",
            JobState::Failed | JobState::Timeout | JobState::NodeFail | JobState::OutOfMemory => "bad",
        };
        StateBadge { word: state.word(), class }
    }
}

impl From<NodeState> for StateBadge {
    fn from(state: NodeState) -> StateBadge {
        let class = match state {
            NodeState::Up => "good",
            NodeState::Paused | NodeState::Draining | NodeState::Drained => "caution",
            NodeState::Unreachable | NodeState::Lost => "bad",
        };
        StateBadge { word: state.word(), class }
    }
}

impl From<&Health> for StateBadge {
    fn from(health: &Health) -> StateBadge {
        let class = match health {
            Health::Well => "good",
            Health::Recovering(_) => "caution",
            Health::Fenced(_) => "bad",
        };
        StateBadge { word: health.words().0, class }
    }
}
