//! One job: why it is in its state, what happened to it, whom it shares devices with, and what it reports.

use std::sync::Arc;

use askama::Template;
use cohabit_client::types::{
    AttemptRecord, JobChange, JobPhase, JobRecord, JobState, MetricValue, Slowdown, Time,
};
use cohabit_console::format_number;
use cohabit_console::records::gpu_usage::attempt_usage;
use cohabit_console::records::job_sheet::{attempt_span, job_properties, rank_line};
use cohabit_console::records::progress::value_text;
use cohabit_console::records::{local_time, progress};
use jiff::tz::TimeZone;

use super::chart_field::FIELD;
use super::curves::Curves;
use super::gpu_curves::GpuCurves;
use super::job_row::JobRow;
use super::line;
use super::overview::per_cent_done;
use super::state_badge::StateBadge;
use crate::cluster::Cluster;
use crate::state::{AttemptMetrics, JobAnswer, WebState};

/// One job.
#[derive(Template)]
#[template(path = "job.html")]
pub(crate) struct JobView {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: StateBadge,
    pub(crate) sentences: Vec<String>,
    pub(crate) changes: Vec<ChangeLink>,
    /// The array that it is, or is a member of.
    pub(crate) array: Option<u64>,
    pub(crate) progress: Option<JobProgress>,
    /// The present values, where there are no curves.
    pub(crate) metrics: Vec<JobMetric>,
    pub(crate) curves: Curves,
    pub(crate) gpus: Option<GpuCurves>,
    /// The width and height of the field of a curve.
    pub(crate) field: (u32, u32),
    pub(crate) neighbors: Vec<JobNeighbor>,
    pub(crate) own: Slowdowns,
    pub(crate) properties: Vec<(&'static str, String)>,
    pub(crate) attempts: Vec<AttemptView>,
    pub(crate) history: Vec<HistoryLine>,
}

/// A change that may be asked for.
#[derive(Debug)]
pub(crate) struct ChangeLink {
    pub(crate) verb: &'static str,
    pub(crate) label: &'static str,
}

/// How far it is.
#[derive(Debug)]
pub(crate) struct JobProgress {
    pub(crate) per_cent: Option<u64>,
    pub(crate) text: String,
}

/// The present value of a metric.
#[derive(Debug)]
pub(crate) struct JobMetric {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) is_number: bool,
}

/// A job on the same device.
#[derive(Debug)]
pub(crate) struct JobNeighbor {
    pub(crate) row: JobRow,
    pub(crate) slowdowns: Slowdowns,
}

/// How much slower than alone a job is, as predicted and as measured.
#[derive(Debug)]
pub(crate) struct Slowdowns {
    pub(crate) predicted: String,
    pub(crate) measured: String,
}

/// One try to run it.
#[derive(Debug)]
pub(crate) struct AttemptView {
    pub(crate) number: u32,
    pub(crate) span: String,
    pub(crate) ranks: Vec<String>,
    /// What it did with its GPUs.
    pub(crate) usage: Option<String>,
}

/// Something that happened to it.
#[derive(Debug)]
pub(crate) struct HistoryLine {
    pub(crate) at: String,
    pub(crate) text: String,
}

impl JobView {
    pub(crate) fn new(
        state: &WebState,
        cluster: &Cluster,
        answer: &JobAnswer,
        metrics: &[(u32, Arc<AttemptMetrics>)],
    ) -> JobView {
        let (job, now) = (&answer.record, cluster.as_of());
        let neighbors = job.sharing_with.iter().filter_map(|id| cluster.jobs.get(*id));
        let events = answer.explanation.history.iter().rev();
        let curves = Curves::new(job.id, metrics, &state.zone);
        let attempts = job.attempts.iter().rev();
        let attempts = attempts.map(|it| {
            AttemptView::new(it, attempt_usage(&answer.usage, job.id.attempt(it.attempt)), &state.zone)
        });
        let reported = job.progress.iter().flat_map(|progress| &progress.metrics);
        let metrics = reported.filter(|_| curves.charts.is_empty());
        let mut properties = job_properties(job, now, &state.zone);
        properties.iter_mut().for_each(|(_, text)| *text = line(text));
        JobView {
            id: job.id.to_string(),
            name: line(&job.name),
            state: job.state.into(),
            sentences: answer.explanation.sentences.iter().map(|it| line(it)).collect(),
            changes: change_links(state, job),
            array: (job.array.is_some() || job.id.index.is_some()).then_some(job.id.number),
            progress: JobProgress::of(job, now),
            metrics: metrics.map(|(name, value)| JobMetric::new(name, *value)).collect(),
            curves,
            gpus: GpuCurves::new(job.id, &answer.usage),
            field: FIELD,
            neighbors: neighbors.map(|neighbor| JobNeighbor::new(neighbor, now)).collect(),
            own: Slowdowns::of(job),
            properties,
            attempts: attempts.collect(),
            history: events
                .map(|event| HistoryLine {
                    at: local_time(event.at, &state.zone),
                    text: line(&event.to_string()),
                })
                .collect(),
        }
    }
}

/// The changes that make sense in the job's state, for those who may make them.
fn change_links(state: &WebState, job: &JobRecord) -> Vec<ChangeLink> {
    if !state.is_ours(job) {
        return Vec::new();
    }
    let possible = |change: &JobChange| match change {
        JobChange::Cancel => !job.state.is_terminal(),
        JobChange::Hold => job.state == JobState::Pending,
        JobChange::Release => job.state == JobState::Held,
        JobChange::Requeue => job.state.phase() != JobPhase::Waiting,
        JobChange::Kill | JobChange::Withdraw => false,
    };
    let link = |change: JobChange| ChangeLink { verb: change.verb(), label: label(change) };
    CHANGES.into_iter().filter(possible).map(link).collect()
}

/// The changes that pages offer.
pub(crate) const CHANGES: [JobChange; 4] =
    [JobChange::Cancel, JobChange::Hold, JobChange::Release, JobChange::Requeue];

const fn label(change: JobChange) -> &'static str {
    match change {
        JobChange::Cancel => "Cancel",
        JobChange::Hold => "Hold",
        JobChange::Release => "Release",
        JobChange::Requeue => "Requeue",
        JobChange::Kill => "Kill",
        JobChange::Withdraw => "Withdraw",
    }
}

impl JobProgress {
    fn of(job: &JobRecord, now: Time) -> Option<JobProgress> {
        let reported = job.progress.as_ref()?;
        let silence = progress::silence(reported, now).filter(|_| !job.state.is_terminal());
        let parts = [
            Some(progress::progress_text(reported)),
            reported.rate.map(|rate| format!("{} steps/s", format_number(rate))),
            silence.or_else(|| {
                Some(format!("{} left", reported.remaining()?)).filter(|_| !job.state.is_terminal())
            }),
        ];
        let text = line(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
        Some(JobProgress { per_cent: per_cent_done(reported), text })
    }
}

impl JobMetric {
    fn new(name: &str, value: MetricValue) -> JobMetric {
        JobMetric { name: line(name), value: value_text(value), is_number: value.is_finite() }
    }
}

impl JobNeighbor {
    fn new(job: &JobRecord, now: Time) -> JobNeighbor {
        JobNeighbor { row: JobRow::new(job, now), slowdowns: Slowdowns::of(job) }
    }
}

impl Slowdowns {
    fn of(job: &JobRecord) -> Slowdowns {
        let text = |slowdown: Option<Slowdown>| {
            slowdown.map_or_else(|| "unknown".to_owned(), |it| format!("{:.2}", it.as_f64()))
        };
        Slowdowns {
            predicted: text(job.predicted.as_ref().and_then(|it| it.slowdown)),
            measured: text(job.slowdown_measured),
        }
    }
}

impl AttemptView {
    fn new(attempt: &AttemptRecord, usage: Option<String>, zone: &TimeZone) -> AttemptView {
        AttemptView {
            number: attempt.attempt,
            span: line(&attempt_span(attempt, zone)),
            ranks: attempt.ranks.iter().map(|rank| line(&rank_line(rank))).collect(),
            usage,
        }
    }
}
