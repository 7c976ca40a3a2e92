//! What must be true of the whole cluster, seen from outside: from what the fake machines really run.

use std::collections::BTreeMap;

use cohabit_scheduler_core::Head;
use cohabit_types::{
    AttemptId, AttemptRecord, Filter, JobEvent, JobEventKind, JobId, JobRecord, JobRevision, JobState,
    Outcome, RankId, Span, StartFailure, StopReason, Time,
};

use crate::node::SimNode;
use crate::process::RankProcess;

/// No machine is overloaded, no job runs in two attempts, no rank in two places, no array beyond its limit.
pub(crate) fn check_running(nodes: &[SimNode]) -> Result<(), String> {
    let mut jobs: BTreeMap<JobId, AttemptId> = BTreeMap::new();
    let mut ranks: BTreeMap<RankId, usize> = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate() {
        if let Some(overload) = node.machine.overload() {
            return Err(format!("machine {place} is overloaded: {overload}"));
        }
        for (rank, _) in node.machine.live() {
            if let Some(earlier) =
                jobs.insert(rank.attempt.job, rank.attempt).filter(|it| *it != rank.attempt)
            {
                return Err(format!("attempts {earlier} and {} of one job run at once", rank.attempt));
            }
            if let Some(elsewhere) = ranks.insert(*rank, place) {
                return Err(format!("rank {rank} runs on machines {elsewhere} and {place}"));
            }
        }
    }
    array_limits(nodes, &jobs)
}

fn array_limits(nodes: &[SimNode], live: &BTreeMap<JobId, AttemptId>) -> Result<(), String> {
    let processes = nodes.iter().flat_map(|node| node.machine.live());
    let limits: BTreeMap<u64, u32> = processes.filter_map(|(rank, it)| limit(rank, it)).collect();
    for (number, limit) in limits {
        let running = live.keys().filter(|job| job.number == number).count();
        if running > limit as usize {
            return Err(format!("{running} members of array {number} run at once, {limit} may"));
        }
    }
    Ok(())
}

fn limit(rank: &RankId, process: &RankProcess) -> Option<(u64, u32)> {
    Some((rank.attempt.job.number, process.start.spec.array.as_ref()?.at_once?))
}

/// Every job that lives says why.
pub(crate) fn reasons(head: &Head, now: Time) -> Result<(), String> {
    let silent = head.live_jobs().find(|job| head.record(now, *job).is_none_or(|it| it.reason.is_empty()));
    silent.map_or(Ok(()), |job| Err(format!("job {job} does not say why it is where it is")))
}

/// A job that has not ended, with what it says about that.
pub(crate) fn describe_unended(head: &Head, now: Time, job: JobId) -> String {
    match head.record(now, job) {
        Some(record) => format!("job {job} is {}: {}", record.state, record.reason),
        None => format!("job {job} is unknown"),
    }
}

/// Every job that was ever accepted has ended, and is known for as long as it should be.
pub(crate) fn check_ends(head: &Head, now: Time, retention: Span, jobs: &[JobId]) -> Result<(), String> {
    let may_be_forgotten = Time::EPOCH + retention < now;
    let ended =
        |job: &JobId| head.record(now, *job).map_or(may_be_forgotten, |record| record.state.is_terminal());
    jobs.iter().find(|job| !ended(job)).map_or(Ok(()), |job| Err(describe_unended(head, now, *job)))
}

/// No attempt used more device time than it is booked for.
///
/// It holds its devices from before its first process to after its last, so what the machines measured is
/// less.
pub(crate) fn device_time(head: &Head, now: Time, nodes: &[SimNode]) -> Result<(), String> {
    let mut used: BTreeMap<AttemptId, u64> = BTreeMap::new();
    for (attempt, time) in nodes.iter().flat_map(|node| &node.machine.accounts().device_time) {
        *used.entry(*attempt).or_default() += time;
    }
    for (attempt, used) in used {
        let Some(record) = head.record(now, attempt.job) else { continue };
        let booked = record.attempts.iter().find(|it| it.attempt == attempt.attempt).map_or(0, booked);
        if used > booked {
            return Err(format!(
                "attempt {attempt} used {used} thousandths of a device times µs, booked are {booked}"
            ));
        }
    }
    Ok(())
}

fn booked(attempt: &AttemptRecord) -> u64 {
    let length = attempt.ended_at.unwrap_or(attempt.started_at).since(attempt.started_at).as_micros();
    let shares = attempt.ranks.iter().map(|rank| u64::from(rank.share.0) * rank.devices.len() as u64);
    shares.sum::<u64>() * length
}

/// No job got another attempt after its cancellation was confirmed.
pub(crate) fn check_cancellations(
    head: &Head,
    now: Time,
    cancelled: &BTreeMap<JobId, Time>,
) -> Result<(), String> {
    for (job, confirmed_at) in cancelled {
        let record = head.record(now, *job);
        let last = record.as_ref().and_then(JobRecord::latest);
        if let Some(again) = last.filter(|attempt| attempt.started_at > *confirmed_at) {
            return Err(format!("job {job} was cancelled, and then got attempt {}", again.attempt));
        }
    }
    Ok(())
}

/// What is recorded of each rank's end is what its machine saw, unless the head gave it up.
pub(crate) fn outcomes(head: &Head, now: Time, nodes: &[SimNode]) -> Result<(), String> {
    for (rank, seen) in nodes.iter().flat_map(|node| &node.machine.accounts().outcomes) {
        let Some(record) = head.record(now, rank.attempt.job) else { continue };
        let attempt = record.attempts.iter().find(|it| it.attempt == rank.attempt.attempt);
        let recorded = attempt.and_then(|it| it.ranks.get(rank.rank as usize)?.outcome.as_ref());
        match recorded {
            Some(Outcome::Lost(_)) => {}
            // Of its start the head never heard, either.
            Some(Outcome::NotStarted(StartFailure::OrderLost)) if matches!(seen, Outcome::Lost(_)) => {}
            Some(recorded) if recorded == seen => {}
            Some(_) | None => return Err(format!("{rank} ended as {seen:?}, recorded is {recorded:?}")),
        }
    }
    Ok(())
}

/// Who was brought down by another's fault is recorded as stopped, and not as having failed by itself.
pub(crate) fn victims(head: &Head, now: Time, nodes: &[SimNode]) -> Result<(), String> {
    for rank in nodes.iter().flat_map(|node| &node.machine.accounts().victims) {
        let Some(record) = head.record(now, rank.attempt.job) else { continue };
        let Some(attempt) = record.attempts.iter().find(|it| it.attempt == rank.attempt.attempt) else {
            continue;
        };
        let is_given_up = |outcome: &Outcome| {
            matches!(outcome, Outcome::Lost(_) | Outcome::NotStarted(StartFailure::OrderLost))
        };
        let given_up = attempt.ranks.iter().any(|it| it.outcome.as_ref().is_some_and(is_given_up));
        match attempt.stopped {
            None if !given_up => {
                return Err(format!("{rank} was a victim of another's fault, and nothing recorded says so"));
            }
            Some(StopReason::MpsFault) => return Err(format!("{rank} is blamed for another's fault")),
            None | Some(_) => {}
        }
    }
    Ok(())
}

/// No job pays with a retry, or with its end, for what others did to its GPU.
pub(crate) fn check_retries(head: &Head, now: Time, jobs: &[JobId]) -> Result<(), String> {
    for record in jobs.iter().filter_map(|job| head.record(now, *job)) {
        if let Some(attempt) = paid_for_others(&head.story(record.id), &record.attempts) {
            return Err(format!("{attempt} was stopped for no fault of its own and paid with a retry"));
        }
        if record.state == JobState::Failed && record.latest().is_some_and(blameless) {
            return Err(format!("job {} failed because of what others did to its GPU", record.id));
        }
    }
    Ok(())
}

/// The first attempt that did, of those about which the story tells: a long one has lost its middle.
pub(crate) fn paid_for_others(story: &[JobEvent], attempts: &[AttemptRecord]) -> Option<AttemptId> {
    let mut before = (0, 0);
    for chapter in story {
        let JobEventKind::Requeued { attempt, failures, .. } = chapter.happening else { continue };
        let (number, paid) = std::mem::replace(&mut before, (attempt.attempt, failures));
        let ended = attempts.iter().find(|it| it.attempt == attempt.attempt);
        if number + 1 == attempt.attempt && failures > paid && ended.is_some_and(blameless) {
            return Some(attempt);
        }
    }
    None
}

fn blameless(attempt: &AttemptRecord) -> bool {
    attempt.stopped.is_some_and(is_blameless)
}

const fn is_blameless(why: StopReason) -> bool {
    match why {
        StopReason::MpsFaultVictim | StopReason::DeviceLost | StopReason::Unenforced => true,
        StopReason::Cancelled
        | StopReason::TimeLimit
        | StopReason::Requeued
        | StopReason::GangBroken
        | StopReason::Preempted
        | StopReason::Superseded
        | StopReason::Orphaned
        | StopReason::MpsFault
        | StopReason::GpuMemory => false,
    }
}

/// Every question about jobs that are still known has an answer.
pub(crate) fn check_answers(head: &Head, now: Time, jobs: &[JobId]) -> Result<(), String> {
    let jobs: Vec<JobId> = jobs.iter().copied().filter(|job| head.record(now, *job).is_some()).collect();
    let filter = Filter { limit: 1_000, ..Filter::default() };
    let known: Vec<JobRevision> = jobs.iter().map(|job| JobRevision { job: *job, revision: 0 }).collect();
    let refused =
        |question: &str, refusal: cohabit_types::Refusal| Err(format!("{question} was refused: {refusal}"));
    let (_nodes, _page) = (head.node_records(), head.list(now, &filter));
    if let Err(refusal) = head.show(now, &jobs) {
        return refused("show", refusal);
    }
    if let Err(refusal) = head.changed_since(now, &known) {
        return refused("watch", refusal);
    }
    for job in jobs {
        if let Err(refusal) = head.explain(now, job) {
            return refused(&format!("explain {job}"), refusal);
        }
    }
    Ok(())
}
