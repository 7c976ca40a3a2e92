//! Explanations for people: why a job waits, how it runs, or how it ended, as sentences with numbers.
//!
//! The short reason and its code come from `reason`.

use cohabit_types::{
    Cause, Demand, Enforcement, JobEvent, JobEventKind, JobId, JobPhase, JobRecord, JobState,
    PredictedSlowdown, Span, Time, counted, span_range,
};

use crate::expected_times::EndEvidence;
use crate::head::Head;
use crate::job::{FaultOrigin, Job, JobStatus, device_fault};
use crate::reader::HeadReader;
use crate::reason::listed;
use crate::submission::SubmissionState;

impl Head {
    /// Everything that happened to a job, the oldest first. It begins with the submission, which all members
    /// of an array share.
    pub fn job_history(&self, id: JobId) -> Vec<JobEvent> {
        let Some(submission) = self.submissions.get(&id.number) else { return Vec::new() };
        let first = JobEvent {
            at: submission.submitted_at,
            cause: Cause::User(submission.user.clone()),
            kind: JobEventKind::Submitted,
        };
        let rest = self.jobs.get(&id).map_or(&[][..], |job| &job.events);
        std::iter::once(first).chain(rest.iter().cloned()).collect()
    }
}

impl HeadReader<'_> {
    /// Sentences that explain the state of a job, or of an array as a whole.
    pub(crate) fn sentences(&self, id: JobId) -> Option<Vec<String>> {
        let submission = self.head.submissions.get(&id.number)?;
        let Some(job) = self.head.jobs.get(&id) else { return self.array_sentences(id) };
        let (code, reason) = self.reason(id, job);
        let mut sentences = vec![
            opening_sentence(self.now, id, job, submission),
            format!("{}. ({code})", capitalised(&reason)),
        ];
        let record = self.job_record(id, submission, job);
        sentences.extend(sharing_sentence(&record));
        sentences.extend(host_limits_sentence(&record));
        sentences.extend(self.host_share_sentence(job, &submission.spec.demand));
        sentences.extend(private_user_sentence(&record, submission));
        sentences.extend(self.unreachable_sentence(id, job));
        sentences.extend(self.stall_sentence(id, job));
        sentences.extend(self.idle_sentence(id, job));
        sentences.extend(self.colocation_sentence(id, job));
        sentences.extend(device_fault_sentence(job));
        sentences.extend(job.exclusive_gpu_sentence(submission));
        sentences.extend(self.owned_nodes_sentence(id, submission));
        sentences.extend(self.stays_sentence(id, submission));
        sentences.extend(self.head.reservation_sentences(id, submission, self.now));
        sentences.extend(self.queue_sentences(id, job));
        sentences.extend(self.share_sentence(id, submission));
        sentences.extend(self.forecast_sentence(id));
        sentences.extend(self.end_sentence(id, job, submission));
        Some(sentences)
    }

    /// A summary of the array, and the sentences of the first member that has not completed.
    fn array_sentences(&self, id: JobId) -> Option<Vec<String>> {
        let record = self.record(id)?;
        let mut sentences = vec![format!("Array {id}: {}.", record.reason)];
        let submission = self.head.submissions.get(&id.number)?;
        let is_open =
            |member: &JobId| self.head.jobs.get(member).is_some_and(|job| job.state() != JobState::Completed);
        if let Some(member) = submission.jobs(id.number).into_iter().find(is_open) {
            sentences.extend(self.sentences(member)?);
        }
        Some(sentences)
    }

    /// For a queued job: the nodes that do not take it because they serve another account alone.
    fn owned_nodes_sentence(&self, id: JobId, submission: &SubmissionState) -> Option<String> {
        if !self.head.eligible.contains(&id) {
            return None;
        }
        let others = self.head.nodes.values().filter(|node| node.takes_jobs());
        let others: Vec<(&str, &str)> = others
            .filter(|node| !node.serves(submission.account()))
            .filter_map(|node| Some((node.name.as_str(), node.account()?)))
            .collect();
        let ((node, account), more) = others.split_first()?;
        let more = match more.len() {
            0 => String::new(),
            more => format!(" ({} like it)", counted(more, "other node is", "other nodes are")),
        };
        Some(format!(
            "Node {node} serves only the account '{account}', because its worker is not root{more}; start the worker as \
             root or with --allow-shared-account."
        ))
    }

    /// For a queued child of an application: why it cannot go to another node than the others.
    fn stays_sentence(&self, id: JobId, submission: &SubmissionState) -> Option<String> {
        let why = self.head.stays_reason(&submission.spec).filter(|_| self.head.eligible.contains(&id))?;
        Some(format!("{}.", capitalised(&why)))
    }

    /// For a placed job with a range of cores or host memory: what it holds, and whether that can change.
    fn host_share_sentence(&self, job: &Job, demand: &Demand) -> Option<String> {
        let (least, most) = (demand.least_host(), demand.up_to?);
        let live = job.live_attempt()?;
        let part = live.placement.parts.first()?;
        let holds = part.host_share(demand);
        if !demand.is_fungible() {
            return Some(format!(
                "It holds {holds} on each node, of {least} to {most}; this is fixed, because it may run on several nodes."
            ));
        }
        let node = self.head.nodes.get(&part.node)?;
        let name = &node.name;
        if let Some(why) = node.fixed_shares_reason() {
            return Some(format!(
                "It holds {holds} on node {name}, of {least} to {most}; this is fixed while it runs, because {why}."
            ));
        }
        let told = match &live.ordered_allotment {
            Some(ordered) => format!("; its worker was told to make that {}", ordered.to),
            None => String::new(),
        };
        Some(format!("It holds {holds} on node {name}, of {least} to {most}{told}."))
    }

    /// For a running job: since when it has reported no step, if it counts as stalled.
    fn stall_sentence(&self, id: JobId, job: &Job) -> Option<String> {
        let live = id.attempt(job.live_attempt()?.number);
        let stalls = job.events.iter().rev().filter_map(|event| Some((event.at, event.kind.stall()?)));
        let (at, (_, quiet_for, step)) = stalls.into_iter().find(|(_, (attempt, ..))| *attempt == live)?;
        let has_gone_on = self.head.volatile.progress.get(&live).is_some_and(|it| Some(it.step) != step);
        let quiet_for = quiet_for + self.now.since(at);
        (!has_gone_on).then(|| {
            format!(
                "It has reported no step for {quiet_for}: look at its output (cohabit logs {id}), and requeue or \
                 cancel it if it hangs."
            )
        })
    }

    /// For a running job: since when it has done nothing, and what becomes of it.
    fn idle_sentence(&self, id: JobId, job: &Job) -> Option<String> {
        let since = job.live_attempt()?.idle_since?;
        let idle_for = self.now.since(since);
        Some(match self.head.idle_limits(id) {
            Some(limits) => format!("It has done nothing for {idle_for}; {limits}."),
            None => format!("It has done nothing for {idle_for}."),
        })
    }

    /// For a placed job: a node that is unreachable now, and what becomes of the job.
    fn unreachable_sentence(&self, id: JobId, job: &Job) -> Option<String> {
        let (node_id, node) = self.unreachable_node(job)?;
        let limit = self.head.unreachable_limit(node_id, id);
        let follows = match job.stop_requested() {
            Some(_) => "is stopped there",
            None => "goes on there",
        };
        Some(format!(
            "Node {} is unreachable: the job {follows} when the worker is connected again, or given up \
             after {limit} without a connection.",
            node.name
        ))
    }

    /// How much a job and those on the same devices slow each other down.
    fn colocation_sentence(&self, id: JobId, job: &Job) -> Option<String> {
        let own = self.colocation_slowdown_of(id, job)?;
        let PredictedSlowdown { expected, least, most } = own.predicted;
        let measured = own.measured.map(|it| format!("; measured: {it:.2}")).unwrap_or_default();
        let known = own.beside.iter().filter_map(|other| self.forecasts?.slowdown(*other));
        let others = known.map(|other| {
            let measured = other.measured.map(|it| format!(" (measured: {it:.2})")).unwrap_or_default();
            format!("; slowdown of job {}: {:.2}{measured}", other.job, other.predicted.expected)
        });
        Some(format!(
            "Predicted slowdown: {expected:.2} ({least:.2} to {most:.2}{measured}), because it shares a GPU \
             with job {}{}.",
            listed(&own.beside),
            others.collect::<String>()
        ))
    }

    /// For a queued job: how many are ahead of it, how many run, and which of those is likely to end first.
    fn queue_sentences(&self, id: JobId, job: &Job) -> Option<String> {
        if job.state() != JobState::Pending || !self.head.eligible.contains(&id) {
            return None;
        }
        let placed: std::collections::BTreeSet<JobId> =
            self.head.nodes.values().flat_map(|node| node.jobs.iter().copied()).collect();
        let soonest = placed
            .iter()
            .filter_map(|other| {
                let live = self.head.jobs.get(other)?.live_attempt()?;
                let progress = self.head.volatile.progress.get(&other.attempt(live.number))?;
                Some((progress.remaining()?, *other))
            })
            .min();
        let running = counted(placed.len(), "job is running", "jobs are running");
        // The policy's own reason, where there is one, says already who is ahead.
        let counts = match self.forecast(id).is_some() {
            true => format!("{running}."),
            false => {
                let ahead = counted(self.head.ahead_of(id), "job is ahead of it", "jobs are ahead of it");
                format!("{ahead} and {running}.")
            }
        };
        let ends = soonest.map(|(left, other)| {
            format!(" According to its progress, job {other} will be the first to end, in {left}.")
        });
        Some(counts + &ends.unwrap_or_default())
    }

    /// For a queued job: when it is expected to start and end. A forecast that says 'now', although the
    /// policy lets it wait, is ignored.
    fn forecast_sentence(&self, id: JobId) -> Option<String> {
        let start = self.expected_run(id)?.start;
        let starts_in = start.at.since(self.now);
        if starts_in == Span::ZERO {
            return None;
        }
        Some(match start.between.map(|both| both.map(|at| at.since(self.now))) {
            None => format!("Expected start: in about {starts_in}."),
            Some([least, most]) => format!(
                "Expected start: in {} (8 of 10 times), from the run times of jobs like those before it, and if none \
                 is submitted that comes first.",
                span_range(least, most)
            ),
        })
    }

    /// For a job that has not ended: when it ends, or how long it runs, and by what that is known.
    fn end_sentence(&self, id: JobId, job: &Job, submission: &SubmissionState) -> Option<String> {
        let (what, is_live) = match job.state().phase() {
            JobPhase::Ended => return None,
            JobPhase::Placed => ("Expected end: in", true),
            JobPhase::Waiting => ("Expected run time:", false),
        };
        let progress = self.head.progress_of(id, job);
        Some(match self.end_evidence(id, job, submission, progress.as_ref()) {
            EndEvidence::Progress(at) => {
                format!("Expected end: in about {}, by its own progress.", at.since(self.now))
            }
            EndEvidence::Stated(None) if is_live => {
                "Expected end: unknown, because it runs for longer than its submission states.".to_owned()
            }
            EndEvidence::Stated(left) => {
                let left = match is_live {
                    true => left?,
                    false => self.expected_run(id)?.end?.at.since(self.now),
                };
                format!(
                    "Expected end: in about {left}, by the steps and the model that its submission states."
                )
            }
            EndEvidence::Runs(rest, known) => {
                let whole = || known.distribution.remaining(Span::ZERO);
                let span = if is_live { rest } else { whole() };
                let range = span_range(span.least, span.most);
                let runs = counted(known.runs, "completed run", "completed runs");
                let held = job.live_attempt().map_or(Span::ZERO, |it| self.now.since(it.started_at));
                let longer = match held > known.longest {
                    true => " It has run for longer than any of them.",
                    false => "",
                };
                format!("{what} {range} (8 of 10 such jobs), from {runs} like it.{longer}")
            }
            EndEvidence::Unknown => {
                let what = what.trim_end_matches(" in");
                let why = match progress.filter(|it| is_live && it.remaining().is_some()) {
                    Some(_) => "it is behind its own pace",
                    None if is_live => {
                        "it does not report how many steps it takes, and fewer than 3 jobs like it have completed"
                    }
                    None => "fewer than 3 jobs like it have completed",
                };
                format!("{what} unknown, because {why}.")
            }
        })
    }
}

fn opening_sentence(now: Time, id: JobId, job: &Job, submission: &SubmissionState) -> String {
    let state = job.state();
    let attempts = job.attempt_count();
    match &job.status {
        JobStatus::Waiting(_) => {
            format!("Job {id} is {state}; it was submitted {} ago.", now.since(submission.submitted_at))
        }
        JobStatus::Running(attempt) | JobStatus::Stopping(attempt, _) => {
            let placed_for = now.since(attempt.started_at);
            format!("Job {id} is {state}; attempt {attempts} started {placed_for} ago.")
        }
        JobStatus::Ended(_) => {
            format!(
                "Job {id} ended as {state} after {}.",
                counted(job.attempts_made(), "attempt", "attempts")
            )
        }
    }
}

/// Whether the limits of a job on a shared device are enforced.
fn sharing_sentence(record: &JobRecord) -> Option<String> {
    match record.sharing().filter(|_| record.state.phase() == JobPhase::Placed)? {
        Enforcement::Enforced => Some("Its limits on the shared GPU are enforced.".to_owned()),
        Enforcement::Unenforced(why) => {
            Some(format!("Its limits on the shared GPU are not enforced: {why}."))
        }
    }
}

/// Where a job's claims of cores and host memory are not enforced.
fn host_limits_sentence(record: &JobRecord) -> Option<String> {
    let (node, limits) = record.host_limits().filter(|_| record.state.phase() == JobPhase::Placed)?;
    let Enforcement::Unenforced(why) = limits else { return None };
    Some(format!("Its limits on cores and host memory are not enforced on node {node}: {why}."))
}

/// Which user id a job has on a node on which its user has no account.
fn private_user_sentence(record: &JobRecord, submission: &SubmissionState) -> Option<String> {
    let ranks = record.latest().into_iter().flat_map(|attempt| &attempt.ranks);
    let (node, uid) = ranks.filter_map(|rank| Some((&rank.node, rank.private_uid?))).next()?;
    let account = submission.account();
    Some(format!(
        "The account '{account}' does not exist on node {node}: the job runs there as user id {uid}, which no \
         other job has."
    ))
}

/// For a job that has not ended: the device fault that ended its previous attempt, and whether it used a
/// retry.
fn device_fault_sentence(job: &Job) -> Option<String> {
    let ended = job.ended_attempts.last().filter(|_| job.ended().is_none())?;
    let why = ended.as_ref().effective_stop()?;
    let retries = match device_fault(why)? {
        FaultOrigin::Own if !job.failed_by_prediction(&ended.attempt) => "one",
        FaultOrigin::Own | FaultOrigin::Other => "none",
    };
    let number = ended.attempt.number;
    Some(format!(
        "Attempt {number} was stopped because {}; that used {retries} of its retries.",
        why.clause()
    ))
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
