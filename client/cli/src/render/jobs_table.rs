//! The table of jobs, for `list` and `wait`.

use cohabit_client::types::{JobRecord, Time};
use cohabit_console::Screen;
use cohabit_console::table::{self, cell};
use comfy_table::{Cell, Color, Row};
use jiff::tz::TimeZone;

use super::expected_times::eta;
use super::job_cells::{detail, gpus, runtime, slowdown};
use super::parameters::ParameterColumns;
use super::progress::has_diverged;
use super::short_name::{LONGEST_LISTED_NAME, short_name};
use super::{local_time, states};

/// Which columns are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnSet {
    Usual,
    Wide,
}

const USUAL: [&str; 8] = ["ID", "NAME", "USER", "STATE", "RUNTIME", "ETA", "NODE", "DETAIL"];
const WIDE: [&str; 14] = [
    "ID",
    "NAME",
    "USER",
    "STATE",
    "RUNTIME",
    "ETA",
    "NODE",
    "DETAIL",
    "GPUS",
    "SLOWDOWN",
    "PRIORITY",
    "GROUP",
    "SUBMITTED",
    "COMMAND",
];

/// The table as of `now`, with times in `zone`.
pub(crate) fn jobs_table(
    jobs: &[JobRecord],
    columns: ColumnSet,
    now: Time,
    zone: &TimeZone,
    screen: Screen,
) -> String {
    let headings: &[&str] = match columns {
        ColumnSet::Usual => &USUAL,
        ColumnSet::Wide => &WIDE,
    };
    let parameters = ParameterColumns::of(jobs.iter().filter_map(|job| job.labels.entry.as_deref()));
    let of_entries = parameters.headings();
    let headings: Vec<&str> = headings.iter().copied().chain(of_entries.iter().map(String::as_str)).collect();
    let mut table = table::table(&headings, screen);
    for job in jobs {
        let mut row = usual_row(job, now);
        if columns == ColumnSet::Wide {
            add_wide_cells(&mut row, job, zone);
        }
        for text in parameters.cells(job.labels.entry.as_deref()) {
            row.add_cell(cell(text));
        }
        table.add_row(row);
    }
    table::text(&table)
}

fn usual_row(job: &JobRecord, now: Time) -> Row {
    let mut row = Row::new();
    row.add_cell(cell(job.id))
        .add_cell(cell(short_name(&job.name, LONGEST_LISTED_NAME)))
        .add_cell(cell(&job.user))
        .add_cell(states::state(job.state))
        .add_cell(cell(runtime(job, now).map_or(String::new(), |span| span.to_string())))
        .add_cell(cell(eta(job, now)))
        .add_cell(cell(job.nodes().join(",")))
        .add_cell(detail_cell(job, now));
    row
}

fn add_wide_cells(row: &mut Row, job: &JobRecord, zone: &TimeZone) {
    row.add_cell(cell(gpus(&job.demand)))
        .add_cell(cell(slowdown(job).map_or(String::new(), |slowdown| format!("{slowdown:.2}"))))
        .add_cell(cell(job.priority))
        .add_cell(cell(job.group.as_deref().unwrap_or("")))
        .add_cell(cell(local_time(job.submitted_at, zone)))
        .add_cell(cell(job.command_line()));
}

/// The same as [`detail`], in red for a training that has diverged.
fn detail_cell(job: &JobRecord, now: Time) -> Cell {
    let cell = cell(detail(job, now));
    match job.progress.as_ref().is_some_and(has_diverged) {
        true => cell.fg(Color::Red),
        false => cell,
    }
}
