//! Lines below a table: what is not in it.

use cohabit_client::types::{JobId, JobRecord, RankId};
use cohabit_console::printable_line;
use serde::Serialize;

/// A process that did not answer, as far as its job is known.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct SilentProcess {
    process: RankId,
    job: JobId,
    rank: u32,
    role: Option<String>,
    name: Option<String>,
    node: Option<String>,
}

impl SilentProcess {
    fn new(process: RankId, records: &[JobRecord]) -> SilentProcess {
        let record = records.iter().find(|record| record.id == process.job());
        let attempt = record.and_then(|record| {
            record.attempts.iter().find(|attempt| attempt.attempt == process.attempt.attempt)
        });
        let rank = attempt.and_then(|attempt| attempt.ranks.get(process.rank as usize));
        SilentProcess {
            process,
            job: process.job(),
            rank: process.rank,
            role: record.map(role),
            name: record.map(|record| record.name.clone()),
            node: rank.map(|rank| rank.node.clone()),
        }
    }

    /// `the actor 'ada' (job 7/0) on node n2`.
    fn words(&self) -> String {
        let SilentProcess { job, rank, .. } = self;
        let what = match (&self.role, &self.name) {
            (Some(role), Some(name)) if role == name => format!("the process '{name}'"),
            (Some(role), Some(name)) => format!("the {role} process '{name}'"),
            _ => "the process".to_owned(),
        };
        let node = self.node.as_ref().map_or(String::new(), |node| format!(" on node {node}"));
        format!("{what} (job {job}/{rank}){node}")
    }
}

/// What a job is in its application: the title of a child begins with it.
pub(crate) fn role(record: &JobRecord) -> String {
    match record.application {
        None => "coordinator".to_owned(),
        Some(_) => record.work.split(' ').next().unwrap_or_default().to_owned(),
    }
}

/// The processes that did not answer; `records` are those of their jobs.
pub(super) fn silent_processes(silent: &[RankId], records: &[JobRecord]) -> Vec<SilentProcess> {
    silent.iter().map(|process| SilentProcess::new(*process, records)).collect()
}

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
    for silent in silent_processes(silent, records) {
        lines.push(format!("{} did not answer in time: what only it knows is missing", silent.words()));
    }
    lines.iter().map(|line| printable_line(line).into_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::running;

    #[test]
    fn a_silent_process_is_told_with_what_it_is_and_where() {
        let root = JobId::new(3);
        let actor = JobRecord {
            name: "ada".into(),
            work: "actor of application 3".into(),
            application: Some(root),
            ..running()
        };
        let tasks = JobRecord {
            id: root,
            name: "tasks".into(),
            work: "tasks of application 3".into(),
            attempts: Vec::new(),
            ..actor.clone()
        };
        let silent = [actor.id.attempt(2).rank(0), root.attempt(1).rank(1), JobId::new(9).attempt(1).rank(0)];
        let words =
            silent_processes(&silent, &[actor, tasks]).iter().map(SilentProcess::words).collect::<Vec<_>>();
        assert_eq!(
            words,
            [
                "the actor process 'ada' (job 12/0) on node gpu1",
                "the process 'tasks' (job 3/1)",
                "the process (job 9/0)"
            ]
        );
    }
}
