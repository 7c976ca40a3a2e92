//! The report of the demo: where and when each job ran, its result, and what sharing gained.

use cohabit_client::types::{JobRecord, LogPosition, Span, Time};
use cohabit_client::{Client, LogOptions};
use cohabit_console::{CommandError, Screen, table};
use futures::TryStreamExt as _;

const HEADINGS: [&str; 8] = ["JOB", "TRAINING", "STATE", "NODE", "DEVICE", "STARTED", "RUNTIME", "RESULT"];
/// The result is among this many last lines of a job's output.
const LAST_LINES: u64 = 40;
/// The end of the line with the result of a training program.
const RESULT_ENDS: &str = " never seen in training";

/// The report on jobs that have ended.
pub(super) async fn report(client: &Client, ended: &[JobRecord]) -> Result<String, CommandError> {
    let mut results = Vec::new();
    for job in ended {
        results.push(result(&last_lines(client, job).await?).unwrap_or_default());
    }
    Ok(format!("\n{}\n{}", jobs_table(ended, &results, Screen::of_stdout()), gain(ended)))
}

async fn last_lines(client: &Client, job: &JobRecord) -> Result<String, CommandError> {
    let options = LogOptions { from: LogPosition::Tail(LAST_LINES), ..LogOptions::default() };
    let records: Vec<_> = client.logs(job.id, options).try_collect().await?;
    let bytes: Vec<u8> = records.into_iter().flat_map(|record| record.bytes).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `accuracy 97.8%` of `accuracy 97.8% on 360 images never seen in training`.
fn result(output: &str) -> Option<String> {
    let line = output.lines().rfind(|line| line.ends_with(RESULT_ENDS))?;
    Some(line.split(" on ").next().unwrap_or(line).to_owned())
}

fn jobs_table(ended: &[JobRecord], results: &[String], screen: Screen) -> String {
    let begin = begin(ended);
    let mut table = table::table(&HEADINGS, screen);
    for (job, result) in ended.iter().zip(results) {
        let devices: Vec<String> = job.devices().iter().map(ToString::to_string).collect();
        table.add_row([
            job.id.to_string(),
            job.name.clone(),
            job.state.to_string(),
            job.nodes().join(","),
            devices.join(","),
            job.started_at.map_or(String::new(), |at| format!("+{:.1} s", at.since(begin).as_secs_f64())),
            runtime(job).map_or(String::new(), |span| format!("{:.1} s", span.as_secs_f64())),
            result.clone(),
        ]);
    }
    table::text(&table)
}

fn begin(ended: &[JobRecord]) -> Time {
    ended.iter().filter_map(|job| job.started_at).min().unwrap_or(Time::EPOCH)
}

fn runtime(job: &JobRecord) -> Option<Span> {
    Some(job.ended_at?.since(job.started_at?))
}

/// Compares the measured duration with the sum of the run times.
fn gain(ended: &[JobRecord]) -> String {
    let end = ended.iter().filter_map(|job| job.ended_at).max().unwrap_or(Time::EPOCH);
    let together = end.since(begin(ended)).as_secs_f64();
    let apart: f64 = ended.iter().filter_map(runtime).map(Span::as_secs_f64).sum();
    format!(
        "Running together, the jobs took {together:.1} s. One after another, the same runs would take {apart:.1} s: \
         {:.1} times as long.\n\
         (Both times are measured. A job that shares a slot takes somewhat longer than alone.)",
        apart / together.max(f64::EPSILON),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::{at, running};

    fn ended(started: u64, ended: u64) -> JobRecord {
        JobRecord { started_at: Some(at(started)), ended_at: Some(at(ended)), ..running() }
    }

    #[test]
    fn the_result_is_taken_from_the_end_of_the_output() {
        let digits = "epoch  60/60  loss 0.01\naccuracy 97.8% on 360 images never seen in training\n";
        assert_eq!(result(digits).as_deref(), Some("accuracy 97.8%"));
        let charlm = "loss 1.912 nats per character on text never seen in training\n---\non and on\n---\n";
        assert_eq!(result(charlm).as_deref(), Some("loss 1.912 nats per character"));
        assert_eq!(result("killed\n"), None);
    }

    #[test]
    fn the_gain_compares_the_duration_with_the_sum_of_run_times() {
        let gain = gain(&[ended(0, 10), ended(0, 10), ended(10, 20)]);
        assert!(gain.starts_with("Running together, the jobs took 20.0 s."), "{gain}");
        assert!(gain.contains("would take 30.0 s: 1.5 times as long"), "{gain}");
    }
}
