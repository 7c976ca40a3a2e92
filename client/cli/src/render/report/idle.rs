//! Running jobs that hold GPUs and do nothing: by readings of the GPUs, or without them by progress.

use cohabit_client::types::{IDLE_STRETCH, JobId, JobRecord, Span, Time, UsageRecord};
use cohabit_console::table::{self, cell};
use cohabit_console::{Screen, printable_line};
use serde::Serialize;

/// A job that does nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IdleJob {
    pub(crate) job: JobId,
    user: String,
    name: String,
    nodes: Vec<String>,
    /// Devices, each times the part that it holds.
    held: f64,
    /// For how long it has done nothing.
    quiet_for: Span,
    by: IdleEvidence,
}

/// What tells that a job does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum IdleEvidence {
    /// All its GPUs were below 1%.
    Utilization,
    /// It has reported no step; nothing reads its devices.
    Progress,
}

impl IdleJob {
    /// The job, if its latest attempt runs and does nothing. `usage` may have records of others.
    pub(crate) fn new(record: &JobRecord, usage: &[UsageRecord], now: Time) -> Option<IdleJob> {
        let attempt = record.latest().filter(|attempt| attempt.ended_at.is_none())?;
        let id = record.id.attempt(attempt.attempt);
        let devices = attempt.ranks.iter().map(|rank| rank.share.as_f64() * rank.devices.len() as f64);
        let held: f64 = devices.sum();
        let of_attempt: Vec<&UsageRecord> = usage.iter().filter(|it| it.rank.attempt == id).collect();
        let (quiet_for, by) = match of_attempt[..] {
            [] => {
                let at = record.progress.as_ref()?.at.max(attempt.started_at);
                (now.since(at), IdleEvidence::Progress)
            }
            // A job is idle for as long as all its GPUs are.
            _ => (of_attempt.iter().map(|it| quiet_end(it)).min()?, IdleEvidence::Utilization),
        };
        let is_idle = held > 0.0 && quiet_for >= IDLE_STRETCH;
        is_idle.then(|| IdleJob {
            job: record.id,
            user: record.user.clone(),
            name: record.name.clone(),
            nodes: record.nodes(),
            held,
            quiet_for,
            by,
        })
    }
}

/// For how long the end of the curve of a GPU has been at nothing.
fn quiet_end(record: &UsageRecord) -> Span {
    let curve = &record.usage.curve;
    let quiet = curve.points.iter().rev().take_while(|point| point.utilization == Some(0)).count();
    Span::from_micros(curve.step.as_micros().saturating_mul(quiet as u64)).min(record.usage.held)
}

/// The table, or that there are none.
pub(crate) fn idle_table(idle: &[IdleJob], screen: Screen) -> String {
    if idle.is_empty() {
        return "No running job that you may see holds GPUs and does nothing.\n".to_owned();
    }
    let headings = ["JOB", "NAME", "USER", "NODES", "GPUS", "IDLE FOR", "BY"];
    let mut table = table::table(&headings, screen);
    for job in idle {
        let by = match job.by {
            IdleEvidence::Utilization => "utilization",
            IdleEvidence::Progress => "progress",
        };
        let texts = [
            job.job.to_string(),
            printable_line(&job.name).into_owned(),
            printable_line(&job.user).into_owned(),
            printable_line(&job.nodes.join(",")).into_owned(),
            format!("{:.1}", job.held),
            job.quiet_for.to_string(),
            by.to_owned(),
        ];
        table.add_row(texts.map(cell));
    }
    table::text(&table)
}

/// The jobs as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct IdleDocument<'a> {
    jobs: Vec<IdleJobDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct IdleJobDocument<'a> {
    job: String,
    name: &'a str,
    user: &'a str,
    nodes: &'a [String],
    gpus: f64,
    idle_s: f64,
    by: IdleEvidence,
}

impl<'a> From<&'a [IdleJob]> for IdleDocument<'a> {
    fn from(idle: &'a [IdleJob]) -> IdleDocument<'a> {
        let job = |it: &'a IdleJob| IdleJobDocument {
            job: it.job.to_string(),
            name: &it.name,
            user: &it.user,
            nodes: &it.nodes,
            gpus: it.held,
            idle_s: it.quiet_for.as_secs_f64(),
            by: it.by,
        };
        IdleDocument { jobs: idle.iter().map(job).collect() }
    }
}
