//! Plain tables: upper-case headings, two spaces between columns, no lines.

use cohabit_client::proto::{JobState, NodeState};
use comfy_table::{Cell, Color, ContentArrangement, Table, presets};

use crate::output::{Colour, Screen};

/// An empty table with these headings.
pub(crate) fn table(headings: &[&str], screen: Screen) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings).force_no_tty();
    if let Some(width) = screen.width {
        table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
    }
    if screen.colour == Colour::Shown {
        table.enforce_styling();
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// The table's text, without spaces at the ends of lines.
pub(crate) fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

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
