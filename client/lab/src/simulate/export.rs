//! Results as CSV: a row for each job, or for each user, of every run.

use std::io::{self, Write};

use cohabit_sim::{JobResult, UserMetrics};
use cohabit_types::{Span, Time};
use serde::Serialize;

use super::result::{SimulationResult, SimulationResults};

/// One job of a run. Times are in seconds since the first submission of the run.
#[derive(Debug, Serialize)]
struct ExportedJob<'a> {
    policy: &'a str,
    window: u32,
    seed: u64,
    /// Its number in the order of submission, from 1: the same under every policy.
    job: usize,
    /// Its line in the trace file; empty for a synthetic job.
    line: Option<u64>,
    user: &'a str,
    state: String,
    submit_s: f64,
    start_s: Option<f64>,
    end_s: Option<f64>,
    wait_s: Option<f64>,
    jct_s: Option<f64>,
    run_s: f64,
    slowdown: Option<f64>,
    gpus: f64,
    attempts: usize,
    preemptions: usize,
    out_of_memory: usize,
    /// The nodes of its last attempt, separated by semicolons.
    nodes: String,
}

/// The headings of a file without rows, too.
const JOB_COLUMNS: [&str; 19] = [
    "policy",
    "window",
    "seed",
    "job",
    "line",
    "user",
    "state",
    "submit_s",
    "start_s",
    "end_s",
    "wait_s",
    "jct_s",
    "run_s",
    "slowdown",
    "gpus",
    "attempts",
    "preemptions",
    "out_of_memory",
    "nodes",
];
const USER_COLUMNS: [&str; 11] = [
    "policy",
    "window",
    "seed",
    "user",
    "jobs",
    "completed",
    "mean_wait_s",
    "p95_wait_s",
    "mean_jct_s",
    "p95_jct_s",
    "gpu_hours",
];

/// Writes a row for each job of each run.
pub(super) fn write_jobs(outcomes: &SimulationResults, to: &mut dyn Write) -> io::Result<()> {
    let mut rows = writer(&JOB_COLUMNS, to)?;
    for run in &outcomes.runs {
        let jobs = &run.evaluated.jobs;
        let first = jobs.iter().map(|job| job.submitted).min().unwrap_or(Time::EPOCH);
        for (index, job) in jobs.iter().enumerate() {
            rows.serialize(ExportedJob::of(run, index, job, first)).map_err(io::Error::other)?;
        }
    }
    rows.flush()
}

/// Writes a row for each user of each run.
pub(super) fn write_users(outcomes: &SimulationResults, to: &mut dyn Write) -> io::Result<()> {
    let mut rows = writer(&USER_COLUMNS, to)?;
    for run in &outcomes.runs {
        for user in UserMetrics::of(&run.evaluated.jobs) {
            let UserMetrics {
                user,
                jobs,
                completed,
                mean_wait_s,
                p95_wait_s,
                mean_jct_s,
                p95_jct_s,
                gpu_hours,
            } = user;
            let of_run = (&run.metrics().policy, run.window + 1, run.seed, user, jobs, completed);
            rows.serialize((of_run, mean_wait_s, p95_wait_s, mean_jct_s, p95_jct_s, gpu_hours))
                .map_err(io::Error::other)?;
        }
    }
    rows.flush()
}

fn writer<'a>(columns: &[&str], to: &'a mut dyn Write) -> io::Result<csv::Writer<&'a mut dyn Write>> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(to);
    writer.write_record(columns).map_err(io::Error::other)?;
    Ok(writer)
}

impl<'a> ExportedJob<'a> {
    fn of(run: &'a SimulationResult, index: usize, job: &'a JobResult, first: Time) -> ExportedJob<'a> {
        let since = |at: Time| at.since(first).as_secs_f64();
        ExportedJob {
            policy: &run.metrics().policy,
            window: run.window + 1,
            seed: run.seed,
            job: index + 1,
            line: job.line,
            user: &job.user,
            state: job.state.to_string(),
            submit_s: since(job.submitted),
            start_s: job.started.map(since),
            end_s: job.ended.map(since),
            wait_s: job.waited().map(Span::as_secs_f64),
            jct_s: job.completion_time().map(Span::as_secs_f64),
            run_s: job.ran().as_secs_f64(),
            slowdown: job.slowdown(),
            gpus: job.devices_milli as f64 / 1_000.0,
            attempts: job.attempts.len(),
            preemptions: job.preemptions(),
            out_of_memory: job.out_of_memory,
            nodes: job.nodes.join(";"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::samples::outcomes;

    fn rows(text: &[u8]) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text);
        reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn there_is_a_row_for_each_job_of_each_run() {
        let mut text = Vec::new();
        write_jobs(&outcomes(), &mut text).unwrap();
        let rows = rows(&text);
        assert_eq!((rows.len(), rows[0].join(",")), (1 + 4 * 2, JOB_COLUMNS.join(",")));
        assert_eq!(
            rows[2],
            [
                "fifo",
                "1",
                "1",
                "2",
                "",
                "ada",
                "COMPLETED",
                "0.0",
                "100.0",
                "300.0",
                "100.0",
                "300.0",
                "200.0",
                "1.0",
                "1.0",
                "1",
                "0",
                "0",
                "node-0"
            ]
        );
    }

    #[test]
    fn there_is_a_row_for_each_user_of_each_run() {
        let mut text = Vec::new();
        write_users(&outcomes(), &mut text).unwrap();
        let rows = rows(&text);
        assert_eq!((rows.len(), rows[0].join(",")), (1 + 4, USER_COLUMNS.join(",")));
        assert_eq!(rows[1][..8], ["fifo", "1", "1", "ada", "2", "2", "50.0", "100.0"]);
        assert_eq!(rows[1][8..10], ["200.0", "300.0"]);
    }

    #[test]
    fn names_with_commas_and_quotes_stay_whole() {
        let mut outcomes = outcomes();
        outcomes.runs[0].evaluated.jobs[0].user = "a,\"b\"\nc".into();
        let mut text = Vec::new();
        write_jobs(&outcomes, &mut text).unwrap();
        assert_eq!(rows(&text)[1][5], "a,\"b\"\nc");
    }

    #[test]
    fn the_columns_are_the_fields_in_their_order() {
        let outcomes = outcomes();
        let run = &outcomes.runs[0];
        let row = ExportedJob::of(run, 0, &run.evaluated.jobs[0], Time::EPOCH);
        let mut with_headings = csv::Writer::from_writer(Vec::new());
        with_headings.serialize(row).unwrap();
        let text = with_headings.into_inner().unwrap();
        assert!(String::from_utf8(text).unwrap().starts_with(&(JOB_COLUMNS.join(",") + "\n")));
    }
}
