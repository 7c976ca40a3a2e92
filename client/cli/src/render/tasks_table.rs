//! The tables of the tasks of an application and of the processes that run them.

use cohabit_client::types::{
    JobRecord, Span, TaskClassRecord, TaskListing, TaskRecord, TaskRunnerRecord, TaskRunnerStage, TaskStatus,
};
use cohabit_console::Screen;
use cohabit_console::table::{self, cell};
use comfy_table::{Cell, Color, Row};

use super::job_sheet::claims;
use super::silence::{omissions, process};

const CLASSES: [&str; 5] = ["CLAIMS", "WANTED", "LIVE", "PENDING", "DETAIL"];
const TASKS: [&str; 7] = ["CALLER", "CALL", "TASK", "STATE", "PROCESS", "TOOK", "DETAIL"];

/// The tables; `records` are those of the jobs of all processes in it.
pub(crate) fn tasks_table(listing: &TaskListing, records: &[JobRecord], screen: Screen) -> String {
    let mut classes = table::table(&CLASSES, screen);
    classes.add_rows(listing.classes.iter().map(class_row));
    let mut tasks = table::table(&TASKS, screen);
    tasks.add_rows(listing.tasks.iter().map(|task| task_row(task, &listing.classes, records)));
    let missing = omissions(listing.omitted, ("task", "tasks"), &listing.silent, records);
    format!("{}\n{}{missing}", table::text(&classes), table::text(&tasks))
}

fn class_row(class: &TaskClassRecord) -> Row {
    let mut row = Row::new();
    row.add_cell(cell(claims(&class.demand).join(", ")))
        .add_cell(cell(class.wanted))
        .add_cell(cell(runners(class, TaskRunnerStage::Live)))
        .add_cell(cell(runners(class, TaskRunnerStage::Pending)))
        .add_cell(cell(&class.why));
    row
}

/// `2: 5,6`: how many, and their jobs.
fn runners(class: &TaskClassRecord, state: TaskRunnerStage) -> String {
    let such: Vec<&TaskRunnerRecord> = class.runners.iter().filter(|runner| runner.state == state).collect();
    let jobs: Vec<String> = such.iter().filter_map(|it| Some(it.job?.to_string())).collect();
    match jobs.is_empty() {
        true => such.len().to_string(),
        false => format!("{}: {}", such.len(), jobs.join(",")),
    }
}

fn task_row(task: &TaskRecord, classes: &[TaskClassRecord], records: &[JobRecord]) -> Row {
    let mut row = Row::new();
    row.add_cell(cell(process(task.caller.job(), records)))
        .add_cell(cell(task.call))
        .add_cell(cell(&task.name))
        .add_cell(state(task.state))
        .add_cell(cell(task.runner.map_or(String::new(), |runner| process(runner.job(), records))))
        .add_cell(cell(task.took.map_or(String::new(), took)))
        .add_cell(cell(detail(task, classes)));
    row
}

/// Spans of jobs are shown in seconds; tasks may take less.
fn took(span: Span) -> String {
    match span.as_micros() {
        micros @ 0..1_000 => format!("{micros} µs"),
        micros @ 1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", span.as_secs_f64()),
    }
}

/// Its own reason, or that of its class.
fn detail<'a>(task: &'a TaskRecord, classes: &'a [TaskClassRecord]) -> &'a str {
    if !task.why.is_empty() || task.state != TaskStatus::Waiting {
        return &task.why;
    }
    let class = task.class.and_then(|number| classes.get(number as usize));
    class.map_or("", |class| &class.why)
}

fn state(state: TaskStatus) -> Cell {
    let cell = Cell::new(state.as_str());
    match state {
        TaskStatus::Running | TaskStatus::Parked => cell.fg(Color::Blue),
        TaskStatus::Sent | TaskStatus::Waiting => cell,
        TaskStatus::Returned => cell.fg(Color::Green),
        TaskStatus::Cancelled => cell.fg(Color::Yellow),
        TaskStatus::Failed | TaskStatus::Panicked | TaskStatus::Lost | TaskStatus::NoRunner => {
            cell.fg(Color::Red)
        }
    }
}
