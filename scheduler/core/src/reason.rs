//! Why a job is in its state: a code for programs, and a short reason with numbers for people.
//!
//! A reason completes "Reason: ..."; `explain` adds further sentences.

use std::collections::BTreeSet;
use std::fmt;

use cohabit_policy::Shortage;
use cohabit_types::{
    Cause, JobEventKind, JobId, JobState, NodeId, Outcome, ReasonCode, Span, StopReason, Time, counted,
};

use crate::job::{AttemptRef, Job, JobStatus, PrefetchedAttempt, WaitingJob, device_fault};
use crate::node::Node;
use crate::reader::HeadReader;
use crate::submission::SubmissionState;

/// The most jobs that a sentence lists.
const MAX_LISTED: usize = 10;

impl HeadReader<'_> {
    /// Why a job is in its state.
    pub(crate) fn reason(&self, id: JobId, job: &Job) -> (ReasonCode, String) {
        let (code, why) = match &job.status {
            JobStatus::Waiting(WaitingJob { prefetched: Some(prefetched), .. }) => {
                prefetched_reason(prefetched)
            }
            JobStatus::Waiting(_) => {
                let awaited = || self.head.awaited_jobs(id.number);
                not_yet_eligible(self.now, job, awaited).unwrap_or_else(|| self.waiting_reason(id))
            }
            JobStatus::Running(_) | JobStatus::Stopping(..) => (job.reason_code(), self.placed_reason(job)),
            JobStatus::Ended(end) => return (end.reason, self.end_reason(id, job, end.reason)),
        };
        let clause = job.isolation_clause().or_else(|| self.head.whole_gpu_clause(id, job));
        match clause.filter(|_| job.state() != JobState::Held) {
            Some(clause) => (code, format!("{why}; {clause}")),
            None => (code, why),
        }
    }

    /// Where a placed job runs, or why it is being stopped there, and which of its nodes is unreachable.
    fn placed_reason(&self, job: &Job) -> String {
        let why = match withdrawn_by(job).filter(|_| job.stop_requested() == Some(StopReason::Cancelled)) {
            Some(root) => format!("{} does not need it any more", self.application_name(root)),
            None => job.stop_requested().map_or("", StopReason::clause).to_owned(),
        };
        let placed = placed_reason(job, &why);
        match self.unreachable_node(job) {
            None => placed,
            Some((_, node)) => {
                let silent_for = self.now.since(node.link_changed_at);
                format!("{placed}; nothing has been heard of node {} for {silent_for}", node.name)
            }
        }
    }

    /// `application 'search' (job 1)`.
    fn application_name(&self, root: JobId) -> String {
        match self.head.submissions.get(&root.number) {
            Some(submission) => format!("application '{}' (job {root})", submission.spec.name),
            None => format!("application {root}"),
        }
    }

    /// A node with live ranks of the job whose worker is not connected.
    pub(crate) fn unreachable_node(&self, job: &Job) -> Option<(NodeId, &Node)> {
        let nodes = job.live_attempt()?.live_nodes().into_iter();
        let mut known = nodes.filter_map(|id| Some((id, self.head.nodes.get(&id)?)));
        known.find(|(_, node)| node.key().is_none())
    }

    /// Why an eligible job has not started.
    fn waiting_reason(&self, id: JobId) -> (ReasonCode, String) {
        let submission = &self.head.submissions[&id.number];
        if submission.array_slots_left() == 0 {
            let running = submission.placed();
            let why = format!(
                "{} running, the most that may run at once",
                counted(running, "member of its array is", "members of its array are")
            );
            return (ReasonCode::WaitingForArrayLimit, why);
        }
        let user = self.head.limited_user(id.number);
        if let Some(why) = user.and_then(|user| self.head.running_limit_reason(user, id)) {
            return (ReasonCode::WaitingForUserLimit, why);
        }
        if let Some(why) = self.head.node_reason(id, self.now) {
            return (ReasonCode::WaitingForNodes, why);
        }
        if !self.head.nodes.values().any(Node::takes_jobs) {
            return (ReasonCode::WaitingForNodes, self.no_node_reason());
        }
        let account = submission.account();
        if !self.head.nodes.values().any(|node| node.takes_jobs() && node.serves(account)) {
            let why = format!("no connected worker accepts jobs of the account '{account}'");
            return (ReasonCode::WaitingForNodes, why);
        }
        let has_code = submission.spec.code.is_some();
        if has_code && !self.head.nodes.values().any(|node| node.takes_jobs() && node.fetches_code) {
            let why = "no connected worker can fetch code snapshots".to_owned();
            return (ReasonCode::WaitingForNodes, why);
        }
        match self.forecast(id) {
            Some(forecast) => (forecast.code, forecast.why.clone()),
            None => (ReasonCode::WaitingForTurn, self.turn_reason(id, submission)),
        }
    }

    /// Why it is not the turn of a job, as far as it can be told in a few words.
    fn turn_reason(&self, id: JobId, submission: &SubmissionState) -> String {
        let ahead = self.head.ahead_of(id);
        let kept = (ahead == 0).then(|| self.kept_for_others(submission)).flatten();
        match kept {
            Some(kept) => format!("{}, and {kept}", queue_reason(ahead)),
            None => queue_reason(ahead),
        }
    }

    /// Why no node takes jobs.
    fn no_node_reason(&self) -> String {
        let paused = self.head.nodes.values().find_map(|node| {
            let problem = node.problem.as_ref().filter(|_| node.key().is_some())?;
            let again = problem.paused_until?.since(self.now);
            let (name, message) = (&node.name, &problem.message);
            Some(format!("; {name} could not start a rank ({message}) and will be tried again in {again}"))
        });
        format!("{}{}", Shortage::Nodes, paused.unwrap_or_default())
    }

    /// How a job ended, and why.
    fn end_reason(&self, id: JobId, job: &Job, reason: ReasonCode) -> String {
        if let Some(root) = withdrawn_by(job).filter(|_| reason == ReasonCode::CancelledByUser) {
            let when = match job.last_attempt() {
                None => "before it ran".to_owned(),
                Some(attempt) => format!("after {}", ran_for(attempt)),
            };
            return format!("{} ended it {when}: it was not needed any more", self.application_name(root));
        }
        let limit = self.head.submissions[&id.number].spec.retry.limit;
        let retries = match limit {
            0 => String::new(),
            _ => format!("; {} of {limit} retries were used", job.own_failures),
        };
        match (reason, job.last_attempt()) {
            (ReasonCode::ApplicationEnded, None) => "its application ended before it ran".into(),
            (ReasonCode::ApplicationEnded, Some(attempt)) => {
                format!("its application ended after {}", ran_for(attempt))
            }
            (ReasonCode::DependencyFailed, _) => self.head.failed_dependency(id.number),
            (ReasonCode::CancelledByUser, None) => "it was cancelled before it ran".into(),
            (ReasonCode::CancelledByUser, Some(attempt)) => {
                let clause = attempt.effective_stop().unwrap_or(StopReason::Cancelled).clause();
                format!("{clause} after {}", ran_for(attempt))
            }
            (ReasonCode::TimeLimit, Some(attempt)) => format!(
                "it reached its time limit of {} after {}",
                self.head.submissions[&id.number].spec.time_limit.unwrap_or_default(),
                ran_for(attempt)
            ),
            (ReasonCode::Idle, Some(attempt)) => {
                let since = attempt.attempt.idle_since.unwrap_or(attempt.attempt.started_at);
                let idle_for = attempt.ended_at.unwrap_or(self.now).since(since);
                format!(
                    "it was interactive and had done nothing for {idle_for}; it ran for {}",
                    ran_for(attempt)
                )
            }
            (ReasonCode::Stalled, Some(_)) => {
                let stall = self.head.submissions[&id.number].spec.stall;
                let timeout = stall.map_or(Span::ZERO, |it| it.timeout);
                let lost = counted(job.node_failures, "attempt", "attempts");
                format!(
                    "it reported no step for {timeout}; {lost} stalled or were lost with a node, and {} may \
                     (node-failures)",
                    self.head.config.node_failures
                )
            }
            (_, Some(attempt)) => match attempt.effective_stop().filter(|why| device_fault(*why).is_some()) {
                Some(why) => format!("{}: {}{retries}", why.clause(), describe_end(attempt)),
                None => format!("{}{retries}", describe_end(attempt)),
            },
            (reason, None) => format!("it never ran: {reason}"),
        }
    }
}

/// Why a job has not begun that its worker has in advance.
fn prefetched_reason(prefetched: &PrefetchedAttempt) -> (ReasonCode, String) {
    let PrefetchedAttempt { attempt, after, cancelled } = prefetched;
    let node = attempt.ranks.first().map_or("its node", |rank| &rank.node_name);
    let why = match cancelled {
        Some(why) => format!("{}: {node} is told not to start it", why.clause()),
        None => format!("it is next on {node}, when job {} has ended there", after.job),
    };
    (ReasonCode::WaitingForTurn, why)
}

/// Why a waiting job is not eligible; none if it only waits for room in the cluster.
///
/// `awaited` are the jobs that its submission still waits for.
pub(crate) fn not_yet_eligible(
    now: Time,
    job: &Job,
    awaited: impl FnOnce() -> AwaitedJobs,
) -> Option<(ReasonCode, String)> {
    let waiting = job.waiting()?;
    if waiting.held {
        let by_user = || (ReasonCode::HeldByUser, "it is on hold: release it to let it run".into());
        return Some(job.fault_hold_reason().unwrap_or_else(by_user));
    }
    if waiting.has_dependencies {
        let why = format!("it is waiting for {} to end", awaited());
        return Some((ReasonCode::WaitingForDependency, why));
    }
    let wait = waiting.not_before.filter(|at| *at > now)?.since(now);
    Some(match job.ended_attempts.is_empty() {
        true => (ReasonCode::WaitingForBegin, format!("its begin time is in {wait}")),
        false => (ReasonCode::WaitingForRetry, format!("its next attempt starts in {wait} at the earliest")),
    })
}

fn queue_reason(ahead: usize) -> String {
    match ahead {
        0 => "it is first in the queue".into(),
        1 => "1 job is ahead of it in the queue".into(),
        ahead => format!("{ahead} jobs are ahead of it in the queue"),
    }
}

/// The root job whose application has withdrawn a job, if nobody else has cancelled it.
fn withdrawn_by(job: &Job) -> Option<JobId> {
    let last = job.events.iter().rev().find(|event| {
        let is_by_request = matches!(event.cause, Cause::User(_) | Cause::Job(_));
        is_by_request && matches!(event.kind, JobEventKind::Stopping(..) | JobEventKind::Ended { .. })
    })?;
    match last.cause {
        Cause::Job(root) => Some(root),
        Cause::User(_) | Cause::Plan(_) | Cause::Node(_) | Cause::Clock | Cause::Restart => None,
    }
}

/// Where a placed job runs, or why it is being stopped there.
fn placed_reason(job: &Job, why: &str) -> String {
    let ranks = job.live_attempt().map_or(&[][..], |attempt| &attempt.ranks);
    let mut nodes: Vec<&str> = ranks.iter().map(|rank| rank.node_name.as_str()).collect();
    nodes.dedup();
    let nodes = nodes.join(", ");
    match job.stop_requested() {
        Some(_) => format!("it is being stopped on {nodes} because {why}"),
        None => format!("it is running on {nodes}"),
    }
}

/// How the rank ended that decided the end of the attempt.
fn describe_end(it: AttemptRef<'_>) -> String {
    let number = it.attempt.first_failure.unwrap_or(0);
    let Some(rank) = it.attempt.ranks.get(number as usize) else { return "it had no rank".into() };
    let outcome = rank.outcome().map_or_else(|| "has not ended".to_owned(), Outcome::to_string);
    let subject = if it.attempt.ranks.len() > 1 { format!("rank {number}") } else { "it".into() };
    format!("{subject} {outcome} on {} after {}", rank.node_name, ran_for(it))
}

fn ran_for(it: AttemptRef<'_>) -> Span {
    let started_at = it.attempt.started_at;
    it.ended_at.unwrap_or(started_at).since(started_at)
}

/// Job ids with commas between them; of many, the first ones and the number of the others.
pub(crate) fn listed<'j>(jobs: impl IntoIterator<Item = &'j JobId>) -> String {
    let mut jobs = jobs.into_iter();
    let named: Vec<String> = jobs.by_ref().take(MAX_LISTED).map(ToString::to_string).collect();
    with_others(&named, jobs.count())
}

fn with_others(named: &[String], others: usize) -> String {
    match others {
        0 => named.join(", "),
        others => format!("{} and {}", named.join(", "), counted(others, "other", "others")),
    }
}

/// The jobs for whose end a submission waits: the first ones, and how many there are.
pub(crate) struct AwaitedJobs {
    first: BTreeSet<JobId>,
    count: usize,
}

impl AwaitedJobs {
    /// Of `count` jobs, each maybe named twice.
    pub(crate) fn of(jobs: impl IntoIterator<Item = JobId>, count: usize) -> AwaitedJobs {
        let mut first = BTreeSet::new();
        for job in jobs {
            first.insert(job);
            if first.len() == MAX_LISTED {
                break;
            }
        }
        AwaitedJobs { first, count }
    }
}

impl fmt::Display for AwaitedJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.first.iter().map(ToString::to_string).collect();
        let others = self.count.saturating_sub(named.len());
        write!(f, "{} {}", if self.count == 1 { "job" } else { "jobs" }, with_others(&named, others))
    }
}
