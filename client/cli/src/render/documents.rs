//! Documents for scripts: `"schema": 1`, times in RFC 3339 UTC, durations in seconds, sizes in bytes.
//!
//! Stable once released. They are types of their own, so that the protocol can change without changing them.

use std::collections::BTreeMap;

use cohabit_client::Explanation;
use cohabit_client::proto::{
    AttemptRecord, Chapter, Enforcement, JobChange, JobId, JobRecord, JobState, Outcome, Predicted, Progress,
    RankRecord, ReasonCode, Share, Slowdown, Span, StopReason, TokenRecord, Verdict,
};
use serde::Serialize;

use super::moment;

/// Any document: its fields, and which version of them.
#[derive(Debug, Serialize)]
pub(crate) struct Versioned<T> {
    schema: u32,
    #[serde(flatten)]
    content: T,
}

/// The first version of this document.
pub(crate) const fn versioned<T>(content: T) -> Versioned<T> {
    Versioned { schema: 1, content }
}

/// `{"jobs": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Job>,
}

/// A job.
#[derive(Debug, Serialize)]
pub(crate) struct Job {
    id: JobId,
    name: String,
    user: String,
    state: JobState,
    reason: String,
    reason_code: ReasonCode,
    work: String,
    attempt: u32,
    attempts: Vec<Attempt>,
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
    predicted: Option<Prediction>,
    slowdown_measured: Option<f64>,
    progress: Option<ProgressNow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<Members>,
}

#[derive(Debug, Serialize)]
struct Attempt {
    attempt: u32,
    started_at: String,
    ended_at: Option<String>,
    stopped: Option<StopReason>,
    ranks: Vec<Rank>,
}

#[derive(Debug, Serialize)]
struct Rank {
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

/// What is predicted of a job.
#[derive(Debug, Serialize)]
pub(crate) struct Prediction {
    iterations: Option<u64>,
    runtime_s: Option<f64>,
    slowdown: Option<f64>,
    gpu_memory: Option<u64>,
    starts_at: Option<String>,
    ends_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct ProgressNow {
    step: u64,
    total: Option<u64>,
    rate: Option<f64>,
    eta_s: Option<f64>,
    metrics: BTreeMap<String, f64>,
}

#[derive(Debug, Serialize)]
struct Members {
    members: u64,
    states: BTreeMap<JobState, u64>,
}

impl From<&JobRecord> for Job {
    fn from(job: &JobRecord) -> Job {
        let (sharing, sharing_reason) = told(job.sharing());
        let (limits, limits_reason) = told(job.host_limits().map(|(_, limits)| limits));
        Job {
            id: job.id,
            name: job.name.clone(),
            user: job.user.clone(),
            state: job.state,
            reason: job.reason.clone(),
            reason_code: job.reason_code,
            work: job.work.clone(),
            attempt: job.attempt,
            attempts: job.attempts.iter().map(Attempt::from).collect(),
            exit_code: job.exit_code,
            signal: job.signal.map(|signal| signal.0),
            submitted_at: moment(job.submitted_at),
            started_at: job.started_at.map(moment),
            ended_at: job.ended_at.map(moment),
            nodes: job.nodes(),
            devices: job.devices().into_iter().map(|device| device.to_string()).collect(),
            share: share(job).map(Share::as_f64),
            sharing,
            sharing_reason,
            sharing_with: job.sharing_with.clone(),
            limits,
            limits_reason,
            predicted: job.predicted.as_ref().map(Prediction::from),
            slowdown_measured: job.slowdown_measured.map(Slowdown::as_f64),
            progress: job.progress.as_ref().map(ProgressNow::from),
            array: job
                .array
                .as_ref()
                .map(|array| Members { members: array.members, states: array.states.clone() }),
        }
    }
}

impl From<&Predicted> for Prediction {
    fn from(predicted: &Predicted) -> Prediction {
        Prediction {
            iterations: predicted.iterations,
            runtime_s: predicted.runtime.map(Span::as_secs_f64),
            slowdown: predicted.slowdown.map(Slowdown::as_f64),
            gpu_memory: predicted.gpu_memory.map(|memory| memory.0),
            starts_at: predicted.starts_at.map(moment),
            ends_at: predicted.ends_at.map(moment),
        }
    }
}

/// How much of its devices the latest attempt has; none without devices.
fn share(job: &JobRecord) -> Option<Share> {
    let ranks = &job.latest()?.ranks;
    ranks.iter().find(|rank| !rank.devices.is_empty()).map(|rank| rank.share)
}

/// Whether limits are enforced, in a word, and why not; nothing where it is not known.
fn told(sharing: Option<&Enforcement>) -> (Option<&'static str>, Option<String>) {
    let Some(sharing) = sharing else { return (None, None) };
    let (word, why) = sharing.words();
    (Some(word), why.map(str::to_owned))
}

impl From<&AttemptRecord> for Attempt {
    fn from(attempt: &AttemptRecord) -> Attempt {
        Attempt {
            attempt: attempt.attempt,
            started_at: moment(attempt.started_at),
            ended_at: attempt.ended_at.map(moment),
            stopped: attempt.stopped,
            ranks: attempt.ranks.iter().enumerate().map(Rank::from).collect(),
        }
    }
}

impl From<(usize, &RankRecord)> for Rank {
    fn from((number, rank): (usize, &RankRecord)) -> Rank {
        let (exit_code, signal, failure) = match &rank.outcome {
            None => (None, None, None),
            Some(Outcome::Exited(code)) => (Some(*code), None, None),
            Some(Outcome::Signalled(signal)) => (None, Some(signal.0), None),
            Some(Outcome::NotStarted(failure)) => (None, None, Some(failure.to_string())),
            Some(Outcome::Lost(detail)) => (None, None, Some(detail.clone())),
            Some(Outcome::OutOfGpuMemory { code, said }) => (Some(*code), None, Some(said.clone())),
            Some(outcome @ Outcome::OutOfMemory { code, .. }) => {
                (Some(*code), None, Some(outcome.to_string()))
            }
        };
        let (sharing, sharing_reason) = told(rank.enforcement.as_ref());
        let (limits, limits_reason) = told(rank.host_limits.as_ref());
        Rank {
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

impl From<&Progress> for ProgressNow {
    fn from(progress: &Progress) -> ProgressNow {
        ProgressNow {
            step: progress.step,
            total: progress.total,
            rate: progress.rate,
            eta_s: progress.remaining().map(Span::as_secs_f64),
            metrics: progress.metrics.clone(),
        }
    }
}

/// `{"id", "members"}`: a job that was submitted.
#[derive(Debug, Serialize)]
pub(crate) struct Submitted {
    pub(crate) id: JobId,
    pub(crate) members: u64,
}

/// `{"changes": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct Changes {
    pub(crate) changes: Vec<Change>,
}

/// What became of a change to one job.
#[derive(Debug, Serialize)]
pub(crate) struct Change {
    id: JobId,
    change: JobChange,
    verdict: &'static str,
    message: Option<String>,
}

impl Change {
    pub(crate) fn new(change: JobChange, id: JobId, verdict: &Verdict) -> Change {
        let (word, message) = match verdict {
            Verdict::Done => ("done", None),
            Verdict::Already => ("already", None),
            Verdict::Refused(refusal) => ("refused", Some(refusal.message.clone())),
        };
        Change { id, change, verdict: word, message }
    }
}

/// `{"id", "sentences", "story"}`
#[derive(Debug, Serialize)]
pub(crate) struct Explained {
    id: JobId,
    sentences: Vec<String>,
    story: Vec<ChapterTold>,
}

#[derive(Debug, Serialize)]
struct ChapterTold {
    at: String,
    text: String,
}

impl Explained {
    pub(crate) fn new(id: JobId, explanation: Explanation) -> Explained {
        let told = |chapter: &Chapter| ChapterTold { at: moment(chapter.at), text: chapter.to_string() };
        Explained {
            id,
            sentences: explanation.sentences,
            story: explanation.story.iter().map(told).collect(),
        }
    }
}

/// `{"tokens": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct Tokens {
    pub(crate) tokens: Vec<TokenTold>,
}

/// A token without its secret.
#[derive(Debug, Serialize)]
pub(crate) struct TokenTold {
    name: String,
    role: String,
    account: Option<String>,
    created_at: String,
    expires_at: Option<String>,
}

impl From<&TokenRecord> for TokenTold {
    fn from(token: &TokenRecord) -> TokenTold {
        TokenTold {
            name: token.name.clone(),
            role: token.role.to_string(),
            account: token.runs_as().map(str::to_owned),
            created_at: moment(token.created_at),
            expires_at: token.expires_at.map(moment),
        }
    }
}
