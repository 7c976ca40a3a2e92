//! States of jobs and nodes in their colours.

use cohabit_client::proto::{JobState, NodeState};
use comfy_table::{Cell, Color};

/// A state in its colour.
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

/// A node's state in its colour.
pub(crate) fn node_state(state: NodeState) -> Cell {
    let cell = Cell::new(state.word());
    match state {
        NodeState::Up => cell.fg(Color::Green),
        NodeState::Paused | NodeState::Draining | NodeState::Drained => cell.fg(Color::Yellow),
        NodeState::Unreachable | NodeState::Lost => cell.fg(Color::Red),
    }
}
