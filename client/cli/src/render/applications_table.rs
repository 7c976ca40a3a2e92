//! The table of live applications.

use cohabit_client::types::{ApplicationRecord, JobId, RunnerCount};
use cohabit_console::Screen;
use cohabit_console::table::{self, cell};
use comfy_table::Row;
use jiff::tz::TimeZone;

use super::{local_time, states};

const HEADINGS: [&str; 9] = ["ID", "NAME", "USER", "STATE", "SINCE", "NODE", "MAIN", "PROCESSES", "GPUS"];

/// The table, with times in `zone`.
pub(crate) fn applications_table(
    applications: &[ApplicationRecord],
    zone: &TimeZone,
    screen: Screen,
) -> String {
    let mut table = table::table(&HEADINGS, screen);
    table.add_rows(applications.iter().map(|it| row(it, zone)));
    table::text(&table)
}

fn row(it: &ApplicationRecord, zone: &TimeZone) -> Row {
    let mut row = Row::new();
    row.add_cell(cell(it.job))
        .add_cell(cell(&it.name))
        .add_cell(cell(&it.user))
        .add_cell(states::state(it.state))
        .add_cell(cell(local_time(it.started_at.unwrap_or(it.submitted_at), zone)))
        .add_cell(cell(it.node.as_deref().unwrap_or("")))
        .add_cell(cell(it.mains.iter().map(JobId::to_string).collect::<Vec<_>>().join(",")))
        .add_cell(cell(it.counts.iter().map(count).collect::<Vec<_>>().join(", ")))
        .add_cell(cell(it.max_gpus.map_or(it.gpus.to_string(), |most| format!("{}/{most}", it.gpus))));
    row
}

/// `3 actor, 1 waits`.
fn count(count: &RunnerCount) -> String {
    let RunnerCount { role, placed, waiting } = count;
    let role = role.as_str();
    match (placed, waiting) {
        (placed, 0) => format!("{placed} {role}"),
        (placed, waiting) => format!("{placed} {role} (+{waiting} waiting)"),
    }
}
