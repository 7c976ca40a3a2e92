//! The history of a job: events, with their time and cause.
//!
//! Events are facts with numbers; their sentences are made here, so that every screen says the same.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    AttemptId, Bytes, CheckpointResult, CheckpointSource, DeviceId, Enforcement, HostShare, JobId, JobState,
    Outcome, PlanRequestId, RankId, ReasonCode, Share, Signal, Span, StopReason, Time,
};

/// One thing that happened to a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobEvent {
    /// When, by the head's clock.
    pub at: Time,
    /// Its cause.
    pub cause: Cause,
    /// What happened.
    pub kind: JobEventKind,
}

/// The cause of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A request of this user.
    User(String),
    /// The plan with this number.
    Plan(PlanRequestId),
    /// A report of, or the state of the link to, this node.
    Node(String),
    /// The end of this job.
    Job(JobId),
    /// A deadline passed.
    Clock,
    /// The head restarted.
    Restart,
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEventKind {
    /// It was submitted.
    Submitted,
    /// It was put on hold.
    Held,
    /// It was released.
    Released,
    /// These settings were changed.
    Updated(String),
    /// An attempt was placed.
    Placed {
        /// Which attempt.
        attempt: AttemptId,
        /// Names of the nodes.
        nodes: Vec<String>,
        /// All devices.
        devices: Vec<DeviceId>,
        /// How much of each.
        share: Share,
        /// Time since it could first have run.
        waited: Span,
        /// Why the policy chose so.
        why: String,
    },
    /// A rank runs.
    Started(RankId),
    /// It is known whether the limits of a rank that shares its device are enforced.
    Shares {
        /// Which rank.
        rank: RankId,
        /// Whether they are.
        enforcement: Enforcement,
    },
    /// A rank runs as a user of its own, for the account of its job does not exist on the node.
    PrivateUser {
        /// Which rank.
        rank: RankId,
        /// Name of the account.
        account: String,
        /// Number of the user that it runs as.
        uid: u32,
    },
    /// The cores and the host memory of the attempt were to change, and its worker has answered.
    Allotted {
        /// Which attempt.
        attempt: AttemptId,
        /// What it had.
        from: HostShare,
        /// What it has; the same if its worker could not change it.
        to: HostShare,
        /// Why the policy chose so.
        why: String,
    },
    /// The attempt has reported no step for longer than its stall timeout.
    Stalled {
        /// Which attempt.
        attempt: AttemptId,
        /// The time without a new step.
        quiet_for: Span,
        /// The latest step, if there was one.
        step: Option<u64>,
    },
    /// The GPUs of the attempt have done nothing for a while.
    Idle {
        /// Which attempt.
        attempt: AttemptId,
        /// Since when, by the worker's clock.
        since: Time,
        /// The time since then.
        quiet_for: Span,
    },
    /// What the attempt has found of the checkpoints that were on another node.
    Checkpoints {
        /// Which attempt.
        attempt: AttemptId,
        /// The name of its node.
        node: String,
        /// Where they were.
        source: CheckpointSource,
        /// What came of them.
        result: CheckpointResult,
    },
    /// The attempt is being stopped.
    Stopping(AttemptId, StopReason),
    /// A worker sent this signal to the processes of an attempt, to stop it.
    SignalSent {
        /// Which attempt.
        attempt: AttemptId,
        /// Which signal.
        signal: Signal,
    },
    /// A rank ended.
    RankEnded {
        /// Which rank.
        rank: RankId,
        /// How.
        outcome: Outcome,
    },
    /// The worker that holds the attempt cannot be reached.
    NodeUnreachable {
        /// Its name.
        node: String,
        /// After this long its attempts are given up.
        lost_after: Span,
    },
    /// The worker came back, and the attempt still runs.
    Adopted(AttemptId),
    /// The attempt was given up with its node.
    AttemptLost {
        /// Which attempt.
        attempt: AttemptId,
        /// Why.
        detail: String,
    },
    /// It waits for another attempt.
    Requeued {
        /// The attempt that ended.
        attempt: AttemptId,
        /// Pause before the next.
        pause: Span,
        /// Failures that counted so far.
        failures: u32,
        /// Failures that may count.
        limit: u32,
        /// What ended that attempt, if it was stopped.
        #[serde(default)]
        why: Option<StopReason>,
    },
    /// A report of an attempt that is over was dropped.
    StaleReport(RankId),
    /// An action of a plan no longer fitted and was dropped.
    PlanDropped(String),
    /// It ended.
    Ended {
        /// How.
        state: JobState,
        /// Why.
        reason: ReasonCode,
    },
    /// The prediction of its memory is discarded.
    Distrusted {
        /// The attempt from which on it has its GPU alone.
        attempt: AttemptId,
        /// What had been predicted.
        predicted: Bytes,
        /// The attempt that may have failed for that; without one, no GPU is left that has so much.
        failed: Option<AttemptId>,
    },
}

impl JobEventKind {
    /// The attempt that stalled, the time without a new step, and the latest step, if this is a stall.
    #[must_use]
    pub const fn stall(&self) -> Option<(AttemptId, Span, Option<u64>)> {
        if let JobEventKind::Stalled { attempt, quiet_for, step } = self {
            Some((*attempt, *quiet_for, *step))
        } else {
            None
        }
    }
}

impl Cause {
    fn clause(&self) -> String {
        match self {
            Cause::User(user) => format!("by {user}"),
            Cause::Plan(ticket) => format!("by plan {}", ticket.0),
            Cause::Node(node) => format!("reported by {node}"),
            Cause::Job(job) => format!("because of job {job}"),
            Cause::Clock => "by a timer".into(),
            Cause::Restart => "because the head was restarted".into(),
        }
    }
}

fn listed<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The step that an attempt has not reported, in words.
fn next_step(after: Option<u64>) -> String {
    after.map_or("a first step".to_owned(), |step| format!("a step after step {step}"))
}

impl fmt::Display for JobEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobEventKind::Submitted => f.write_str("submitted"),
            JobEventKind::Held => f.write_str("put on hold"),
            JobEventKind::Released => f.write_str("released"),
            JobEventKind::Updated(settings) => write!(f, "updated: {settings}"),
            JobEventKind::Placed { attempt, nodes, devices, share, waited, why } => {
                let (nodes, what) = (listed(nodes), with_devices(devices, *share));
                let because = if why.is_empty() { String::new() } else { format!(": {why}") };
                let number = attempt.attempt;
                write!(f, "attempt {number} placed on {nodes} {what} after waiting {waited}{because}")
            }
            JobEventKind::Started(rank) => {
                write!(f, "attempt {} rank {} runs", rank.attempt.attempt, rank.rank)
            }
            JobEventKind::Shares { rank, enforcement } => {
                let how = how(enforcement);
                write!(f, "attempt {} rank {} shares its device{how}", rank.attempt.attempt, rank.rank)
            }
            JobEventKind::PrivateUser { rank, account, uid } => write!(
                f,
                "attempt {} rank {} runs as user id {uid}, which no other job has: the account '{account}' does not \
                 exist there",
                rank.attempt.attempt, rank.rank
            ),
            JobEventKind::Allotted { attempt, from, to, why } => {
                write!(f, "attempt {} {}", attempt.attempt, change_of_share(*from, *to, why))
            }
            JobEventKind::Stalled { attempt, quiet_for, step } => {
                write!(f, "attempt {} stalled: {quiet_for} without {}", attempt.attempt, next_step(*step))
            }
            JobEventKind::Idle { attempt: AttemptId { attempt, .. }, quiet_for, .. } => {
                write!(f, "attempt {attempt} has done nothing for {quiet_for}")
            }
            JobEventKind::SignalSent { attempt: AttemptId { attempt, .. }, signal } => {
                write!(f, "attempt {attempt} was sent {signal}")
            }
            JobEventKind::Checkpoints { attempt, node, source, result } => {
                f.write_str(&source.describe(result, attempt.attempt, node))
            }
            JobEventKind::Stopping(attempt, why) => {
                write!(f, "attempt {} is being stopped because {}", attempt.attempt, why.clause())
            }
            JobEventKind::RankEnded { rank, outcome } => {
                write!(f, "attempt {} rank {} {outcome}", rank.attempt.attempt, rank.rank)
            }
            JobEventKind::NodeUnreachable { node, lost_after } => {
                write!(f, "node {node} is unreachable and will be declared lost after {lost_after}")
            }
            JobEventKind::Adopted(attempt) => {
                write!(f, "attempt {} is still running and was adopted", attempt.attempt)
            }
            JobEventKind::AttemptLost { attempt, detail } => {
                write!(f, "attempt {} was lost: {detail}", attempt.attempt)
            }
            JobEventKind::Requeued { attempt, pause, failures, limit, why } => {
                let (number, because) = (attempt.attempt, because(*why));
                write!(f, "queued again after attempt {number}{because}, with a pause of {pause}")?;
                write!(f, " ({failures} of {limit} retries used)")
            }
            JobEventKind::StaleReport(rank) => write!(f, "a late report of {rank} was ignored"),
            JobEventKind::PlanDropped(why) => write!(f, "a planned action was no longer possible: {why}"),
            JobEventKind::Ended { state, reason } => write!(f, "ended as {state} ({reason})"),
            JobEventKind::Distrusted { attempt, predicted, failed } => {
                let why = why_distrusted(*predicted, *failed);
                write!(f, "attempt {} will have a GPU to itself because {why}", attempt.attempt)
            }
        }
    }
}

fn with_devices(devices: &[DeviceId], share: Share) -> String {
    match devices.len() {
        0 => "without a device".to_owned(),
        _ if share == Share::WHOLE => format!("with {}", listed(devices)),
        _ => format!("with {share} of {}", listed(devices)),
    }
}

fn change_of_share(from: HostShare, to: HostShare, why: &str) -> String {
    let because = if why.is_empty() { String::new() } else { format!(" ({why})") };
    match from == to {
        true => format!("keeps {from}: its worker could not change that{because}"),
        false => format!("has {to} instead of {from}{because}"),
    }
}

fn because(why: Option<StopReason>) -> String {
    why.map(|why| format!(" because {}", why.clause())).unwrap_or_default()
}

fn how(enforcement: &Enforcement) -> String {
    match enforcement {
        Enforcement::Enforced => " within enforced limits".to_owned(),
        Enforcement::Unenforced(why) => format!(", but nothing enforces its limits: {why}"),
    }
}

fn why_distrusted(predicted: Bytes, failed: Option<AttemptId>) -> String {
    let Some(AttemptId { attempt, .. }) = failed else {
        return format!("no GPU has the {predicted} of memory that were predicted for it");
    };
    format!(
        "its GPU memory ({predicted}) was only predicted, and attempt {attempt} may have failed because of that"
    )
}

impl fmt::Display for JobEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind, self.cause.clause())
    }
}
