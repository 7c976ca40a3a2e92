//! The table of the actors of an application.

use cohabit_client::types::{ActorListing, ActorRecord, ActorStage, JobId, JobRecord};
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

/// The table; `records` are those of the actors' jobs.
pub(crate) fn actors_table(listing: &ActorListing, records: &[JobRecord], screen: Screen) -> String {
    let mut table = table::table(&HEADINGS, screen);
    for actor in &listing.actors {
        let record = actor.job.and_then(|job| records.iter().find(|record| record.id == job));
        table.add_row(row(actor, listing.has_all_calls(), record));
    }
    table::text(&table) + &omissions(listing.omitted, ("actor", "actors"), &listing.silent, records)
}

fn row(actor: &ActorRecord, has_all_calls: bool, record: Option<&JobRecord>) -> Row {
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
        .add_cell(cell(record.and_then(|record| record.node_of(actor.rank.unwrap_or(0))).unwrap_or("")))
        .add_cell(cell(actor.gpus))
        .add_cell(text(limits))
        .add_cell(cell(calls(actor.calls, has_all_calls)))
        .add_cell(cell(actor.holders))
        .add_cell(cell(&actor.why));
    row
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
