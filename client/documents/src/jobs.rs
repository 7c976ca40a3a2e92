//! Documents of jobs, and of what was done to them.

use std::collections::BTreeMap;

use cohabit_client::types::{
    AttemptRecord, ChangeResult, CodeSnapshot, ContentHash, Enforcement, HostShare, IdleRecord, JobChange,
    JobId, JobPrediction, JobRecord, JobState, MetricValue, Outcome, Progress, RankRecord, ReasonCode, Share,
    Slowdown, Span, StopReason, entry_parameters,
};
use cohabit_console::records::rfc3339;
use serde::Serialize;
use serde_json::{Map, Value};

/// `{"jobs": […]}`
#[derive(Debug, Serialize)]
pub struct JobListDocument {
    pub jobs: Vec<JobDocument>,
}

/// A job.
#[derive(Debug, Serialize)]
pub struct JobDocument {
    id: JobId,
    name: String,
    user: String,
    state: JobState,
    reason: String,
    reason_code: ReasonCode,
    work: String,
    code: Option<CodeDocument>,
    application: Option<JobId>,
    partition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Map<String, Value>>,
    stdout: Option<String>,
    stderr: Option<String>,
    checkpoint: Option<String>,
    attempt: u32,
    attempts: Vec<AttemptDocument>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    submitted_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    nodes: Vec<String>,
    devices: Vec<String>,
    share: Option<f64>,
    sharing: Option<&'static str>,
    sharing_reason: Option<String>,
    sharing_with: Vec<JobId>,
    limits: Option<&'static str>,
    limits_reason: Option<String>,
    predicted: Option<PredictionDocument>,
    slowdown_measured: Option<f64>,
    progress: Option<ProgressDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<ArrayDocument>,
}

/// The snapshot of its code that a job runs in.
#[derive(Debug, Serialize)]
struct CodeDocument {
    snapshot: ContentHash,
    folder: String,
    files: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct AttemptDocument {
    attempt: u32,
    started_at: String,
    ended_at: Option<String>,
    stopped: Option<StopReason>,
    ranks: Vec<RankDocument>,
    host: Vec<HostShareDocument>,
    idle: Option<IdleDocument>,
}

/// Times of an attempt that does nothing.
#[derive(Debug, Serialize)]
struct IdleDocument {
    since: String,
    stop_from: Option<String>,
    stop_at: Option<String>,
}

/// Cores and host memory on one node.
#[derive(Debug, Serialize)]
pub struct HostShareDocument {
    cpus: u32,
    memory: u64,
}

#[derive(Debug, Serialize)]
struct RankDocument {
    rank: usize,
    node: String,
    devices: Vec<String>,
    share: f64,
    sharing: Option<&'static str>,
    sharing_reason: Option<String>,
    gpu_memory: Option<u64>,
    limits: Option<&'static str>,
    limits_reason: Option<String>,
    private_uid: Option<u32>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    failure: Option<String>,
}

/// The prediction for a job.
#[derive(Debug, Serialize)]
pub struct PredictionDocument {
    iterations: Option<u64>,
    runtime_s: Option<f64>,
    runtime_between_s: Option<[f64; 2]>,
    runs: Option<u32>,
    slowdown: Option<f64>,
    gpu_memory: Option<u64>,
    starts_at: Option<String>,
    starts_between: Option<[String; 2]>,
    ends_at: Option<String>,
    ends_between: Option<[String; 2]>,
}

#[derive(Debug, Serialize)]
struct ProgressDocument {
    step: u64,
    total: Option<u64>,
    rate: Option<f64>,
    eta_s: Option<f64>,
    metrics: BTreeMap<String, MetricValue>,
}

#[derive(Debug, Serialize)]
struct ArrayDocument {
    members: u64,
    states: BTreeMap<JobState, u64>,
}

impl From<&JobRecord> for JobDocument {
    fn from(job: &JobRecord) -> JobDocument {
        let (sharing, sharing_reason) = enforcement_words(job.sharing());
        let (limits, limits_reason) = enforcement_words(job.host_limits().map(|(_, limits)| limits));
        JobDocument {
            id: job.id,
            name: job.name.clone(),
            user: job.user.clone(),
            state: job.state,
            reason: job.reason.clone(),
            reason_code: job.reason_code,
            work: job.work.clone(),
            code: job.code.as_ref().map(CodeDocument::from),
            application: job.application,
            entry: job.labels.entry.clone(),
            parameters: job.labels.entry.as_deref().and_then(entry_parameters),
            partition: job.labels.partition.clone(),
            stdout: job.labels.output.stdout.clone(),
            stderr: job.labels.output.stderr.clone(),
            checkpoint: job.labels.checkpoint.clone(),
            attempt: job.attempt,
            attempts: job.attempts.iter().map(AttemptDocument::from).collect(),
            exit_code: job.exit_code,
            signal: job.signal.map(|signal| signal.0),
            submitted_at: rfc3339(job.submitted_at),
            started_at: job.started_at.map(rfc3339),
            ended_at: job.ended_at.map(rfc3339),
            nodes: job.nodes(),
            devices: job.devices().into_iter().map(|device| device.to_string()).collect(),
            share: share(job).map(Share::as_f64),
            sharing,
            sharing_reason,
            sharing_with: job.sharing_with.clone(),
            limits,
            limits_reason,
            predicted: job.predicted.as_ref().map(PredictionDocument::from),
            slowdown_measured: job.slowdown_measured.map(Slowdown::as_f64),
            progress: job.progress.as_ref().map(ProgressDocument::from),
            array: job
                .array
                .as_ref()
                .map(|array| ArrayDocument { members: array.members, states: array.states.clone() }),
        }
    }
}

impl From<&CodeSnapshot> for CodeDocument {
    fn from(code: &CodeSnapshot) -> CodeDocument {
        CodeDocument {
            snapshot: code.manifest,
            folder: code.folder.clone(),
            files: code.files,
            bytes: code.bytes.0,
        }
    }
}

impl From<&JobPrediction> for PredictionDocument {
    fn from(predicted: &JobPrediction) -> PredictionDocument {
        PredictionDocument {
            iterations: predicted.iterations,
            runtime_s: predicted.runtime.map(Span::as_secs_f64),
            runtime_between_s: predicted.runtime_between.map(|both| both.map(Span::as_secs_f64)),
            runs: predicted.runs,
            slowdown: predicted.slowdown.map(Slowdown::as_f64),
            gpu_memory: predicted.gpu_memory.map(|memory| memory.0),
            starts_at: predicted.starts_at.map(rfc3339),
            starts_between: predicted.starts_between.map(|both| both.map(rfc3339)),
            ends_at: predicted.ends_at.map(rfc3339),
            ends_between: predicted.ends_between.map(|both| both.map(rfc3339)),
        }
    }
}

/// The share of its devices that the latest attempt has; none without devices.
fn share(job: &JobRecord) -> Option<Share> {
    let ranks = &job.latest()?.ranks;
    ranks.iter().find(|rank| !rank.devices.is_empty()).map(|rank| rank.share)
}

/// Whether limits are enforced and, if not, the reason; nothing if unknown.
fn enforcement_words(enforcement: Option<&Enforcement>) -> (Option<&'static str>, Option<String>) {
    let Some(enforcement) = enforcement else { return (None, None) };
    let (word, why) = enforcement.words();
    (Some(word), why.map(str::to_owned))
}

impl From<&AttemptRecord> for AttemptDocument {
    fn from(attempt: &AttemptRecord) -> AttemptDocument {
        AttemptDocument {
            attempt: attempt.attempt,
            started_at: rfc3339(attempt.started_at),
            ended_at: attempt.ended_at.map(rfc3339),
            stopped: attempt.stopped,
            ranks: attempt.ranks.iter().enumerate().map(RankDocument::from).collect(),
            host: attempt.host.iter().copied().map(HostShareDocument::from).collect(),
            idle: attempt.idle.as_ref().map(IdleDocument::from),
        }
    }
}

impl From<&IdleRecord> for IdleDocument {
    fn from(idle: &IdleRecord) -> IdleDocument {
        IdleDocument {
            since: rfc3339(idle.since),
            stop_from: idle.stop_from.map(rfc3339),
            stop_at: idle.stop_at.map(rfc3339),
        }
    }
}

impl From<HostShare> for HostShareDocument {
    fn from(share: HostShare) -> HostShareDocument {
        HostShareDocument { cpus: share.cpus, memory: share.memory.0 }
    }
}

impl From<(usize, &RankRecord)> for RankDocument {
    fn from((number, rank): (usize, &RankRecord)) -> RankDocument {
        let (exit_code, signal, failure) = match &rank.outcome {
            None => (None, None, None),
            Some(Outcome::Exited(code)) => (Some(*code), None, None),
            Some(Outcome::Signalled(signal)) => (None, Some(signal.0), None),
            Some(Outcome::NotStarted(failure)) => (None, None, Some(failure.to_string())),
            Some(Outcome::Lost(detail)) => (None, None, Some(detail.clone())),
            Some(Outcome::OutOfGpuMemory { code, message }) => (Some(*code), None, Some(message.clone())),
            Some(outcome @ Outcome::OutOfMemory { code, .. }) => {
                (Some(*code), None, Some(outcome.to_string()))
            }
        };
        let (sharing, sharing_reason) = enforcement_words(rank.enforcement.as_ref());
        let (limits, limits_reason) = enforcement_words(rank.host_limits.as_ref());
        RankDocument {
            rank: number,
            node: rank.node.clone(),
            devices: rank.devices.iter().map(|device| device.to_string()).collect(),
            share: rank.share.as_f64(),
            sharing,
            sharing_reason,
            gpu_memory: rank.gpu_memory.map(|memory| memory.0),
            limits,
            limits_reason,
            private_uid: rank.private_uid,
            exit_code,
            signal,
            failure,
        }
    }
}

impl From<&Progress> for ProgressDocument {
    fn from(progress: &Progress) -> ProgressDocument {
        ProgressDocument {
            step: progress.step,
            total: progress.total,
            rate: progress.rate,
            eta_s: progress.remaining().map(Span::as_secs_f64),
            metrics: progress.metrics.clone(),
        }
    }
}

/// `{"id", "members"}`: a submitted job.
#[derive(Debug, Serialize)]
pub struct SubmittedJobDocument {
    pub id: JobId,
    pub members: u64,
}

/// `{"changes": […]}`
#[derive(Debug, Serialize)]
pub struct ChangeListDocument {
    pub changes: Vec<ChangeDocument>,
}

/// The result of a change to one job.
#[derive(Debug, Serialize)]
pub struct ChangeDocument {
    id: JobId,
    change: JobChange,
    #[serde(rename = "verdict")]
    result: &'static str,
    message: Option<String>,
}

impl ChangeDocument {
    pub fn new(change: JobChange, id: JobId, result: &ChangeResult) -> ChangeDocument {
        let (word, message) = match result {
            ChangeResult::Done => ("done", None),
            ChangeResult::Already => ("already", None),
            ChangeResult::Refused(refusal) => ("refused", Some(refusal.message.clone())),
        };
        ChangeDocument { id, change, result: word, message }
    }
}
