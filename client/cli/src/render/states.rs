//! States of jobs and nodes as coloured cells.

use cohabit_client::types::{JobState, NodeState};
use comfy_table::{Cell, Color};

/// The state of a job.
pub(crate) fn state(state: JobState) -> Cell {
    let cell = Cell::new(state.word());
    match state {
        JobState::Pending | JobState::Held => cell,
        JobState::Running | JobState::Completing => cell.fg(Color::Blue),
        JobState::Completed => cell.fg(Color::Green),
        JobState::Cancelled | JobState::Preempted => cell.fg(Color::Yellow),
        JobState::Failed | JobState::Timeout | JobState::NodeFail | JobState::OutOfMemory => {
            cell.fg(Color::Red)
        }
    }
}

/// The state of a node.
pub(crate) fn node_state(state: NodeState) -> Cell {
    let cell = Cell::new(state.word());
    match state {
        NodeState::Up => cell.fg(Color::Green),
        NodeState::Paused | NodeState::Draining | NodeState::Drained => cell.fg(Color::Yellow),
        NodeState::Unreachable | NodeState::Lost => cell.fg(Color::Red),
    }
}
