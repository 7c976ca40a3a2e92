//! Why a job waits, or why it ended as it did: codes for programs, sentences with numbers for people.

use cohabit_types::{
    Enforcement, JobEvent, JobEventKind, JobId, JobPhase, JobRecord, JobState, Outcome, PredictedSlowdown,
    ReasonCode, Span, Time,
};

use crate::head::Head;
use crate::job::{Attempt, FaultOrigin, Job, device_fault};
use crate::submission::Submission;

impl Head {
    /// Everything that happened to a job, the oldest first; the submission itself is told for all members of
    /// an array.
    pub fn story(&self, id: JobId) -> Vec<JobEvent> {
        let Some(submission) = self.submissions.get(&id.number) else { return Vec::new() };
        let first = JobEvent {
            at: submission.submitted_at,
            cause: cohabit_types::Cause::User(submission.user.clone()),
            happening: JobEventKind::Submitted,
        };
        let rest = self.jobs.get(&id).map_or(&[][..], |job| &job.story);
        std::iter::once(first).chain(rest.iter().cloned()).collect()
    }

    /// Sentences with numbers: why it waits, how it runs, or why it ended as it did.
    pub(crate) fn sentences(&self, now: Time, id: JobId) -> Option<Vec<String>> {
        let submission = self.submissions.get(&id.number)?;
        let Some(job) = self.jobs.get(&id) else { return self.array_sentences(now, id) };
        let (code, reason) = self.reason(now, id, job);
        let opening = match job.state.phase() {
            JobPhase::Waiting => format!(
                "Job {id} is {} and has been waiting for {} since it was submitted.",
                job.state,
                now.since(submission.submitted_at)
            ),
            JobPhase::Placed => format!(
                "Job {id} is {}, for {} in attempt {}.",
                job.state,
                job.live_attempt().map_or(Span::ZERO, |attempt| now.since(attempt.started_at)),
                job.attempts.len()
            ),
            JobPhase::Ended => {
                format!("Job {id} ended as {} after {} attempt(s).", job.state, job.attempts.len())
            }
        };
        let mut sentences = vec![opening, format!("{}. ({code})", capitalised(&reason))];
        let record = self.job_record(now, id, submission, job);
        sentences.extend(sharing_sentence(&record));
        sentences.extend(host_limits_sentence(&record));
        sentences.extend(private_user_sentence(&record, submission));
        sentences.extend(self.colocation_sentence(id, job));
        sentences.extend(device_fault_sentence(job));
        sentences.extend(job.exclusive_gpu_sentence(submission));
        sentences.extend(self.queue_sentences(id, job));
        sentences.extend(self.forecast_sentence(now, id));
        sentences.extend(estimate_sentence(submission));
        Some(sentences)
    }

    fn array_sentences(&self, now: Time, id: JobId) -> Option<Vec<String>> {
        let record = self.record(now, id)?;
        let mut sentences = vec![format!("Array {id}: {}.", record.reason)];
        let submission = self.submissions.get(&id.number)?;
        let unlike =
            |member: &JobId| self.jobs.get(member).is_some_and(|job| job.state != JobState::Completed);
        if let Some(member) = submission.jobs(id.number).into_iter().find(unlike) {
            sentences.extend(self.sentences(now, member)?);
        }
        Some(sentences)
    }

    /// Why a job is in its state.
    pub(crate) fn reason(&self, now: Time, id: JobId, job: &Job) -> (ReasonCode, String) {
        match job.state.phase() {
            JobPhase::Waiting => too_early(now, job).unwrap_or_else(|| self.waiting_reason(now, id)),
            JobPhase::Placed => (job.reason, running_reason(job)),
            JobPhase::Ended => (job.reason, self.end_reason(id, job)),
        }
    }

    /// Why a job waits whose turn may come.
    fn waiting_reason(&self, now: Time, id: JobId) -> (ReasonCode, String) {
        let submission = &self.submissions[&id.number];
        if submission.array_slots_left() == 0 {
            let limit = submission.placed();
            let why = format!("{limit} members of its array run, and no more may at once");
            return (ReasonCode::WaitingForArrayLimit, why);
        }
        if !self.nodes.values().any(crate::node::Node::takes_jobs) {
            return (ReasonCode::WaitingForNodes, self.why_no_node(now));
        }
        match self.live.expected.get(&id) {
            Some(expected) => (expected.code, expected.why.clone()),
            None => self.turn_reason(id),
        }
    }

    fn why_no_node(&self, now: Time) -> String {
        let paused = self.nodes.values().find_map(|node| {
            let trouble = node.trouble.as_ref().filter(|_| node.key().is_some())?;
            let again = trouble.paused_until?.since(now);
            Some(format!("; {} had no room ({}) and is tried again in {again}", node.name, trouble.what))
        });
        format!("no connected worker accepts jobs{}", paused.unwrap_or_default())
    }

    fn turn_reason(&self, id: JobId) -> (ReasonCode, String) {
        match self.ahead_of(id) {
            0 => (ReasonCode::WaitingForTurn, "first in the queue".into()),
            1 => (ReasonCode::WaitingForTurn, "1 job is ahead in the queue".into()),
            ahead => (ReasonCode::WaitingForTurn, format!("{ahead} jobs are ahead in the queue")),
        }
    }

    /// For a job that shares a device: what it and its neighbours cost each other.
    fn colocation_sentence(&self, id: JobId, job: &Job) -> Option<String> {
        let own = self.company(id, job)?;
        let PredictedSlowdown { expected, least, most } = own.predicted;
        let measured = own.measured.map(|it| format!(", and {it:.2} times was measured"));
        let theirs = own.beside.iter().filter_map(|other| self.live.company.get(other)).map(|other| {
            let measured = other.measured.map(|it| format!(" ({it:.2} was measured)")).unwrap_or_default();
            format!("; job {} takes {:.2} times as long{measured}", other.job, other.predicted.expected)
        });
        Some(format!(
            "Beside job {} it is predicted to take {expected:.2} times as long as alone (probably between \
             {least:.2} and {most:.2}){}{}.",
            listed(&own.beside),
            measured.unwrap_or_default(),
            theirs.collect::<String>()
        ))
    }

    /// For a waiting job: who holds the devices, and until when as far as is known.
    fn queue_sentences(&self, id: JobId, job: &Job) -> Option<String> {
        if job.state != JobState::Pending || !self.eligible.contains(&id) {
            return None;
        }
        let placed: std::collections::BTreeSet<JobId> =
            self.nodes.values().flat_map(|node| node.jobs.iter().copied()).collect();
        let soonest = placed
            .iter()
            .filter_map(|other| {
                let progress =
                    self.live.progress.get(&other.attempt(self.jobs[other].live_attempt()?.number))?;
                Some((progress.remaining()?, *other))
            })
            .min();
        let running = placed.len();
        // Who is ahead the policy has said already, where it was asked.
        let crowd = match self.live.expected.contains_key(&id) {
            true => format!("{running} job(s) run."),
            false => format!("{} job(s) are ahead of it and {running} run.", self.ahead_of(id)),
        };
        let ends = soonest
            .map(|(left, other)| format!(" The first to end by its own progress is job {other}, in {left}."));
        Some(crowd + &ends.unwrap_or_default())
    }

    /// For a waiting job: when it may start and end, if all jobs run as long as is expected of them. A
    /// forecast that sees it start now, where the policy lets it wait, is none.
    fn forecast_sentence(&self, now: Time, id: JobId) -> Option<String> {
        let expected = self.live.expected.get(&id)?;
        let starts_in = expected.starts_at?.since(now);
        if starts_in == Span::ZERO {
            return None;
        }
        let end = expected.ends_at.map(|at| format!(" and end in {}", at.since(now)));
        Some(format!(
            "By what is expected of all jobs it may start in {starts_in}{}.",
            end.unwrap_or_default()
        ))
    }

    fn end_reason(&self, id: JobId, job: &Job) -> String {
        let limit = self.submissions[&id.number].spec.retry.limit;
        let retries = match limit {
            0 => String::new(),
            _ => format!("; {} of {limit} retries were used", job.failures),
        };
        match (job.reason, job.attempts.last()) {
            (ReasonCode::DependencyFailed, _) => "a job it depends on ended in the wrong way".into(),
            (ReasonCode::CancelledByUser, None) => "it was cancelled before it ran".into(),
            (ReasonCode::CancelledByUser, Some(attempt)) => {
                format!("it was cancelled after {}", ran_for(attempt))
            }
            (ReasonCode::TimeLimit, Some(attempt)) => format!(
                "it reached its time limit of {} after {}",
                self.submissions[&id.number].spec.time_limit.unwrap_or_default(),
                ran_for(attempt)
            ),
            (_, Some(attempt)) => match attempt.effective_stop().filter(|why| device_fault(*why).is_some()) {
                Some(why) => format!("{}: {}{retries}", why.clause(), describe_end(attempt)),
                None => format!("{}{retries}", describe_end(attempt)),
            },
            (reason, None) => format!("it never ran: {reason}"),
        }
    }
}

/// What keeps a waiting job from its turn, whatever is free.
pub(crate) fn too_early(now: Time, job: &Job) -> Option<(ReasonCode, String)> {
    if job.state == JobState::Held {
        return Some((ReasonCode::HeldByUser, "it is on hold: release it to let it run".into()));
    }
    if !job.waits_for.is_empty() {
        let why = format!("it waits for the end of job {}", listed(&job.waits_for));
        return Some((ReasonCode::WaitingForDependency, why));
    }
    let wait = job.not_before.filter(|at| *at > now)?.since(now);
    Some(match job.attempts.is_empty() {
        true => (ReasonCode::WaitingForBegin, format!("it may begin in {wait}")),
        false => (ReasonCode::WaitingForRetry, format!("its next attempt may begin in {wait}")),
    })
}

fn listed<'j>(jobs: impl IntoIterator<Item = &'j JobId>) -> String {
    jobs.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn running_reason(job: &Job) -> String {
    let Some(attempt) = job.live_attempt() else { return "it is between two attempts".into() };
    let mut nodes: Vec<&str> = attempt.ranks.iter().map(|rank| rank.node_name.as_str()).collect();
    nodes.dedup();
    match attempt.stopping {
        Some(why) => format!("it is being stopped on {} because {}", nodes.join(", "), why.clause()),
        None => format!("it runs on {}", nodes.join(", ")),
    }
}

/// For a job that shares a device: what becomes of its limits there.
fn sharing_sentence(record: &JobRecord) -> Option<String> {
    match record.sharing().filter(|_| record.state.phase() == JobPhase::Placed)? {
        Enforcement::Enforced => Some("Its limits on the GPU that it shares are enforced.".to_owned()),
        Enforcement::Unenforced(why) => {
            Some(format!("Nothing enforces its limits on the GPU that it shares: {why}."))
        }
    }
}

/// For a job that claims cores or host memory: where nothing holds it to them.
fn host_limits_sentence(record: &JobRecord) -> Option<String> {
    let (node, limits) = record.host_limits().filter(|_| record.state.phase() == JobPhase::Placed)?;
    let Enforcement::Unenforced(why) = limits else { return None };
    Some(format!("Nothing limits it to the cores and the host memory that it claims on node {node}: {why}."))
}

/// For a job whose user has no account where it runs, or ran.
fn private_user_sentence(record: &JobRecord, submission: &Submission) -> Option<String> {
    let ranks = record.latest().into_iter().flat_map(|attempt| &attempt.ranks);
    let (node, uid) = ranks.filter_map(|rank| Some((&rank.node, rank.private_uid?))).next()?;
    let account = submission.account();
    Some(format!(
        "The account '{account}' does not exist on node {node}: there it runs as user {uid}, which nobody else is."
    ))
}

/// For a job that goes on: what befell the device of its latest attempt that ended, and what that cost it.
fn device_fault_sentence(job: &Job) -> Option<String> {
    let ended = job.attempts.iter().rev().find(|attempt| !attempt.is_live())?;
    let why = ended.effective_stop().filter(|_| !job.state.is_terminal())?;
    let retries = match device_fault(why)? {
        FaultOrigin::Own if !job.failed_by_prediction(ended) => "one",
        FaultOrigin::Own | FaultOrigin::Other => "none",
    };
    let number = ended.number;
    Some(format!(
        "Attempt {number} was stopped because {}; that used {retries} of its retries.",
        why.clause()
    ))
}

/// What the rank that decided the end had to say.
fn describe_end(attempt: &Attempt) -> String {
    let number = attempt.first_failure.unwrap_or(0);
    let Some(rank) = attempt.ranks.get(number as usize) else { return "it had no rank".into() };
    let outcome = rank.outcome().map_or_else(|| "has not ended".to_owned(), Outcome::to_string);
    let who = if attempt.ranks.len() > 1 { format!("rank {number}") } else { "it".into() };
    format!("{who} {outcome} on {} after {}", rank.node_name, ran_for(attempt))
}

fn ran_for(attempt: &Attempt) -> Span {
    attempt.ended_at.unwrap_or(attempt.started_at).since(attempt.started_at)
}

fn estimate_sentence(submission: &Submission) -> Option<String> {
    let estimate = submission.estimate.as_ref()?;
    let runtime = estimate.runtime?;
    Some(format!("It was expected to run for {runtime}, going by {}.", estimate.basis))
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
