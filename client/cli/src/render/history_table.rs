//! The table of `history`.

use cohabit_client::types::{JobRecord, Time};
use cohabit_console::Screen;
use cohabit_console::table::{self, cell};
use comfy_table::Row;
use jiff::tz::TimeZone;

use super::short_name::{LONGEST_LISTED_NAME, short_name};
use super::{local_time, states};

const HEADINGS: [&str; 8] = ["ID", "NAME", "STATE", "EXIT", "SUBMITTED", "STARTED", "ENDED", "COMMAND"];

/// A row for each job, with times in `zone`.
pub(crate) fn history_table(jobs: &[JobRecord], zone: &TimeZone, screen: Screen) -> String {
    let mut table = table::table(&HEADINGS, screen);
    let time = |time: Option<Time>| time.map_or(String::new(), |time| local_time(time, zone));
    for job in jobs {
        let mut row = Row::new();
        row.add_cell(cell(job.id))
            .add_cell(cell(short_name(&job.name, LONGEST_LISTED_NAME)))
            .add_cell(states::state(job.state))
            .add_cell(cell(exit(job)))
            .add_cell(cell(time(Some(job.submitted_at))))
            .add_cell(cell(time(job.started_at)))
            .add_cell(cell(time(job.ended_at)))
            .add_cell(cell(job.command_line()));
        table.add_row(row);
    }
    table::text(&table)
}

/// The exit code, or the signal that ended the job.
fn exit(job: &JobRecord) -> String {
    match (job.signal, job.exit_code) {
        (Some(signal), _) => format!("signal {}", signal.0),
        (None, Some(code)) => code.to_string(),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::Signal;
    use cohabit_console::Colour;

    use super::super::samples::{at, failed, running};
    use super::*;

    #[test]
    fn a_row_has_times_exit_code_and_command() {
        let screen = Screen { width: None, colour: Colour::None };
        let ended = JobRecord { exit_code: Some(3), signal: None, ended_at: Some(at(9)), ..failed() };
        let killed = JobRecord { signal: Some(Signal::KILL), ..failed() };
        let table = history_table(&[ended.clone(), killed, running()], &TimeZone::UTC, screen);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("ID") && lines[0].ends_with("COMMAND"), "{table}");
        assert!(lines[1].contains(&local_time(at(9), &TimeZone::UTC)), "{table}");
        assert!(lines[1].split_whitespace().any(|word| word == "3"), "{table}");
        assert!(lines[2].contains("signal 9"), "{table}");
        assert!(lines[1].ends_with(ended.command_line()), "{table}");
    }
}
