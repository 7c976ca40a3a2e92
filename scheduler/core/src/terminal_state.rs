//! The states in which a job can end.

use cohabit_types::JobState;

/// The states in which a job can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalState {
    /// Every rank exited with code 0.
    Completed,
    /// It failed by its own fault.
    Failed,
    /// A user cancelled it, or a job that it depends on ended in the wrong way.
    Cancelled,
    /// It reached its time limit.
    Timeout,
    /// It lost its node more often than the configuration allows.
    NodeFail,
    /// It ran out of memory.
    OutOfMemory,
    /// It lost its devices to another job and must not be requeued.
    Preempted,
}

impl TerminalState {
    /// The same in the states of all jobs.
    #[must_use]
    pub const fn job_state(self) -> JobState {
        match self {
            TerminalState::Completed => JobState::Completed,
            TerminalState::Failed => JobState::Failed,
            TerminalState::Cancelled => JobState::Cancelled,
            TerminalState::Timeout => JobState::Timeout,
            TerminalState::NodeFail => JobState::NodeFail,
            TerminalState::OutOfMemory => JobState::OutOfMemory,
            TerminalState::Preempted => JobState::Preempted,
        }
    }

    /// The state, if a job can end in it.
    #[must_use]
    pub const fn of(state: JobState) -> Option<TerminalState> {
        match state {
            JobState::Pending | JobState::Held | JobState::Running | JobState::Completing => None,
            JobState::Completed => Some(TerminalState::Completed),
            JobState::Failed => Some(TerminalState::Failed),
            JobState::Cancelled => Some(TerminalState::Cancelled),
            JobState::Timeout => Some(TerminalState::Timeout),
            JobState::NodeFail => Some(TerminalState::NodeFail),
            JobState::OutOfMemory => Some(TerminalState::OutOfMemory),
            JobState::Preempted => Some(TerminalState::Preempted),
        }
    }
}
