//! Lines below a table: what is not in it.

use cohabit_client::types::{JobId, JobRecord, RankId};
use cohabit_console::printable_line;

/// The name of a process, that of its job, and the number of the job.
pub(super) fn process(job: JobId, records: &[JobRecord]) -> String {
    match records.iter().find(|record| record.id == job) {
        Some(record) => format!("{} {job}", record.name),
        None => job.to_string(),
    }
}

/// What is left out, and which processes have not answered, a line for each.
pub(super) fn omissions(
    omitted: u64,
    what: (&str, &str),
    silent: &[RankId],
    records: &[JobRecord],
) -> String {
    let mut lines = Vec::new();
    if omitted > 0 {
        lines.push(format!("{omitted} more {} not listed", if omitted == 1 { what.0 } else { what.1 }));
    }
    for member in silent {
        let process = process(member.job(), records);
        lines.push(format!(
            "process {process} did not say in time what it does: what only it knows is missing"
        ));
    }
    lines.iter().map(|line| printable_line(line).into_owned() + "\n").collect()
}
