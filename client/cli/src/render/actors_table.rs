//! The table of the actors of an application.

use cohabit_client::types::{ActorListing, ActorRecord, ActorStage, JobId, JobRecord, NodeRecord, NodeState};
use cohabit_console::Screen;
use cohabit_console::table::{self, cell};
use comfy_table::{Cell, Color, Row};

use super::silence::omissions;

const HEADINGS: [&str; 12] = [
    "ID",
    "TYPE",
    "NAME",
    "STATE",
    "INCARNATION",
    "JOB",
    "NODE",
    "GPUS",
    "LIMITS",
    "CALLS",
    "HOLDERS",
    "DETAIL",
];

/// The table; `records` are those of the actors' jobs. A node that cannot be reached is marked.
pub(crate) fn actors_table(
    listing: &ActorListing,
    records: &[JobRecord],
    nodes: &[NodeRecord],
    screen: Screen,
) -> String {
    let mut table = table::table(&HEADINGS, screen);
    for actor in &listing.actors {
        let record = actor.job.and_then(|job| records.iter().find(|record| record.id == job));
        let node = record.and_then(|record| record.node_of(actor.rank.unwrap_or(0)));
        let node = node.map_or(String::new(), |name| with_state(name, nodes));
        table.add_row(row(actor, listing.has_all_calls(), record, &node));
    }
    table::text(&table) + &omissions(listing.omitted, ("actor", "actors"), &listing.silent, records)
}

fn row(actor: &ActorRecord, has_all_calls: bool, record: Option<&JobRecord>, node: &str) -> Row {
    let text = |value: Option<String>| cell(value.unwrap_or_default());
    let incarnation = (actor.incarnation > 0).then(|| actor.incarnation.to_string());
    let limits = record.and_then(|record| record.sharing()).map(|it| it.words().0.to_owned());
    let mut row = Row::new();
    row.add_cell(cell(actor.id))
        .add_cell(cell(&actor.kind))
        .add_cell(cell(actor.name.as_deref().unwrap_or("")))
        .add_cell(state(actor.state))
        .add_cell(text(incarnation))
        .add_cell(text(actor.job.map(|job| process(job, actor.rank))))
        .add_cell(cell(node))
        .add_cell(cell(actor.gpus))
        .add_cell(text(limits))
        .add_cell(cell(calls(actor.calls, has_all_calls)))
        .add_cell(cell(actor.holders))
        .add_cell(cell(&actor.why));
    row
}

/// The name of a node, and its state if nothing is heard of it.
fn with_state(name: &str, nodes: &[NodeRecord]) -> String {
    let state = nodes.iter().find(|node| node.name == name).map(|node| node.state);
    match state {
        Some(state @ (NodeState::Unreachable | NodeState::Lost)) => format!("{name} ({})", state.word()),
        Some(NodeState::Up | NodeState::Paused | NodeState::Draining | NodeState::Drained) | None => {
            name.to_owned()
        }
    }
}

/// The job, and the rank of a member of a gang.
fn process(job: JobId, rank: Option<u32>) -> String {
    rank.map_or_else(|| job.to_string(), |rank| format!("{job}/{rank}"))
}

/// `3+`: those that are known, where not all processes have answered.
fn calls(known: u64, are_all: bool) -> String {
    if are_all { known.to_string() } else { format!("{known}+") }
}

fn state(state: ActorStage) -> Cell {
    let cell = Cell::new(state.as_str());
    match state {
        ActorStage::Queued | ActorStage::Pending | ActorStage::Ended => cell,
        ActorStage::Starting => cell.fg(Color::Blue),
        ActorStage::Ready => cell.fg(Color::Green),
        ActorStage::Restarting => cell.fg(Color::Yellow),
        ActorStage::Unreachable => cell.fg(Color::Red),
    }
}
