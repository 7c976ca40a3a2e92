//! Invariants of the whole cluster, checked from outside against what the simulated machines really run.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_scheduler_core::Head;
use cohabit_types::{
    ApplicationRole, AttemptId, AttemptRecord, Filter, JobEvent, JobEventKind, JobId, JobRecord, JobRevision,
    JobState, Outcome, RankId, Role, RunnerRole, Span, StartFailure, StopReason, Time,
};

use crate::node::SimNode;
use crate::process::RankProcess;

/// Checks that no machine is overloaded, no job runs in two attempts, no rank in two places, and no array
/// and no user exceeds its limit.
pub(crate) fn check_running(
    now: Time,
    nodes: &[SimNode],
    max_running_jobs: Option<u64>,
) -> Result<(), String> {
    let mut jobs: BTreeMap<JobId, AttemptId> = BTreeMap::new();
    let mut ranks: BTreeMap<RankId, usize> = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate() {
        if let Some(overload) = node.machine.overload(now) {
            return Err(format!("machine {place} is overloaded: {overload}"));
        }
        for (rank, _) in node.machine.busy(now) {
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
    check_array_limits(now, nodes, &jobs)?;
    check_user_limit(now, nodes, max_running_jobs)
}

fn check_user_limit(now: Time, nodes: &[SimNode], limit: Option<u64>) -> Result<(), String> {
    let Some(limit) = limit else { return Ok(()) };
    let mut running: BTreeMap<&str, BTreeSet<JobId>> = BTreeMap::new();
    let live = nodes.iter().flat_map(|node| node.machine.busy(now));
    let store = Some(ApplicationRole::Runner(RunnerRole::Store));
    let counts = |it: &RankProcess| it.start.role != Role::Admin && it.start.spec.entrypoint.role() != store;
    for (rank, process) in live.filter(|(_, process)| counts(process)) {
        running.entry(&process.start.user).or_default().insert(rank.attempt.job);
    }
    match running.into_iter().find(|(_, jobs)| jobs.len() as u64 > limit) {
        Some((user, jobs)) => {
            Err(format!("{} jobs of user {user} run at once, the limit is {limit}", jobs.len()))
        }
        None => Ok(()),
    }
}

fn check_array_limits(now: Time, nodes: &[SimNode], live: &BTreeMap<JobId, AttemptId>) -> Result<(), String> {
    let processes = nodes.iter().flat_map(|node| node.machine.busy(now));
    let limits: BTreeMap<u64, u32> = processes.filter_map(|(rank, it)| limit(rank, it)).collect();
    for (number, limit) in limits {
        let running = live.keys().filter(|job| job.number == number).count();
        if running > limit as usize {
            return Err(format!("{running} members of array {number} run at once, the limit is {limit}"));
        }
    }
    Ok(())
}

fn limit(rank: &RankId, process: &RankProcess) -> Option<(u64, u32)> {
    Some((rank.attempt.job.number, process.start.spec.array.as_ref()?.at_once?))
}

/// Checks that every live job gives a reason for its state.
pub(crate) fn check_reasons(head: &Head, now: Time) -> Result<(), String> {
    let silent = head.live_jobs().find(|job| head.at(now).record(*job).is_none_or(|it| it.reason.is_empty()));
    silent.map_or(Ok(()), |job| Err(format!("job {job} gives no reason for its state")))
}

/// Describes a job that has not ended, with its reason.
pub(crate) fn describe_unended(head: &Head, now: Time, job: JobId) -> String {
    match head.at(now).record(job) {
        Some(record) => format!("job {job} is {}: {}", record.state, record.reason),
        None => format!("job {job} is unknown"),
    }
}

/// Checks that every accepted job has ended, and is known for as long as it should be.
pub(crate) fn check_ends(head: &Head, now: Time, retention: Span, jobs: &[JobId]) -> Result<(), String> {
    let may_be_forgotten = Time::EPOCH + retention < now;
    let ended =
        |job: &JobId| head.at(now).record(*job).map_or(may_be_forgotten, |record| record.state.is_terminal());
    jobs.iter().find(|job| !ended(job)).map_or(Ok(()), |job| Err(describe_unended(head, now, *job)))
}

/// Checks that no attempt used more device time than it is booked for, together with those that followed it
/// without a message in between; `first` says which was the first of them.
///
/// An attempt holds its devices from before its first process to after its last, so the machines measure
/// less.
pub(crate) fn check_device_time(
    head: &Head,
    now: Time,
    nodes: &[SimNode],
    first: impl Fn(AttemptId) -> AttemptId,
) -> Result<(), String> {
    let mut times: BTreeMap<AttemptId, u64> = BTreeMap::new();
    for (attempt, time) in nodes.iter().flat_map(|node| &node.machine.accounts().device_time) {
        *times.entry(*attempt).or_default() += time;
    }
    let mut sums: BTreeMap<AttemptId, (u64, u64)> = BTreeMap::new();
    for (attempt, time) in times {
        let Some(record) = head.at(now).record(attempt.job) else { continue };
        let (used, sum) = sums.entry(first(attempt)).or_default();
        *used += time;
        *sum += record.attempts.iter().find(|it| it.attempt == attempt.attempt).map_or(0, booked);
    }
    match sums.into_iter().find(|(_, (used, booked))| used > booked) {
        None => Ok(()),
        Some((attempt, (used, booked))) => Err(format!(
            "attempt {attempt} used {used} thousandths of a device times µs, {booked} are booked"
        )),
    }
}

fn booked(attempt: &AttemptRecord) -> u64 {
    let length = attempt.ended_at.unwrap_or(attempt.started_at).since(attempt.started_at).as_micros();
    let shares = attempt.ranks.iter().map(|rank| u64::from(rank.share.0) * rank.devices.len() as u64);
    shares.sum::<u64>() * length
}

/// Checks that no job got another attempt after its cancellation was confirmed.
pub(crate) fn check_cancellations(
    head: &Head,
    now: Time,
    cancelled: &BTreeMap<JobId, Time>,
    ordered_in_advance_at: impl Fn(AttemptId) -> Option<Time>,
) -> Result<(), String> {
    for (job, confirmed_at) in cancelled {
        let record = head.at(now).record(*job);
        let last = record.as_ref().and_then(JobRecord::latest);
        let ordered_at = |attempt: &AttemptRecord| {
            ordered_in_advance_at(job.attempt(attempt.attempt)).unwrap_or(attempt.started_at)
        };
        if let Some(again) = last.filter(|attempt| ordered_at(attempt) > *confirmed_at) {
            return Err(format!("job {job} was cancelled, and then got attempt {}", again.attempt));
        }
    }
    Ok(())
}

/// Checks that each recorded outcome is the one that the machine observed, unless the head gave the rank up.
pub(crate) fn check_outcomes(head: &Head, now: Time, nodes: &[SimNode]) -> Result<(), String> {
    for (rank, observed) in nodes.iter().flat_map(|node| &node.machine.accounts().outcomes) {
        let Some(record) = head.at(now).record(rank.attempt.job) else { continue };
        let attempt = record.attempts.iter().find(|it| it.attempt == rank.attempt.attempt);
        let recorded = attempt.and_then(|it| it.ranks.get(rank.rank as usize)?.outcome.as_ref());
        match recorded {
            Some(Outcome::Lost(_)) => {}
            // The head never heard of its start, either.
            Some(Outcome::NotStarted(StartFailure::OrderLost)) if matches!(observed, Outcome::Lost(_)) => {}
            Some(recorded) if recorded == observed => {}
            Some(_) | None => {
                return Err(format!("{rank} ended as {observed:?}, but {recorded:?} is recorded"));
            }
        }
    }
    Ok(())
}

/// Checks that a rank ended by another's fault is recorded as stopped and not as failed by itself.
pub(crate) fn check_victims(head: &Head, now: Time, nodes: &[SimNode]) -> Result<(), String> {
    for rank in nodes.iter().flat_map(|node| &node.machine.accounts().victims) {
        let Some(record) = head.at(now).record(rank.attempt.job) else { continue };
        let Some(attempt) = record.attempts.iter().find(|it| it.attempt == rank.attempt.attempt) else {
            continue;
        };
        let is_given_up = |outcome: &Outcome| {
            matches!(outcome, Outcome::Lost(_) | Outcome::NotStarted(StartFailure::OrderLost))
        };
        let given_up = attempt.ranks.iter().any(|it| it.outcome.as_ref().is_some_and(is_given_up));
        match attempt.stopped {
            None if !given_up => {
                return Err(format!("{rank} was ended by another's fault, but is not recorded as a victim"));
            }
            Some(StopReason::MpsFault) => return Err(format!("{rank} is blamed for another's fault")),
            None | Some(_) => {}
        }
    }
    Ok(())
}

/// Checks that a rank which ended well while its executor was suspended counts as that, and not as stopped
/// because the head could not be reached: its job would run again.
pub(crate) fn check_finished_unseen(head: &Head, now: Time, nodes: &[SimNode]) -> Result<(), String> {
    for rank in nodes.iter().flat_map(|node| &node.machine.accounts().finished_unseen) {
        let Some(record) = head.at(now).record(rank.attempt.job) else { continue };
        let attempt = record.attempts.iter().find(|it| it.attempt == rank.attempt.attempt);
        if attempt.is_some_and(|it| it.ranks.len() == 1 && it.stopped == Some(StopReason::Orphaned)) {
            return Err(format!("{rank} had ended by itself, but is recorded as stopped"));
        }
    }
    Ok(())
}

/// Checks that no job is charged a retry, or fails, because of what others did to its GPU.
pub(crate) fn check_retries(head: &Head, now: Time, jobs: &[JobId]) -> Result<(), String> {
    for record in jobs.iter().filter_map(|job| head.at(now).record(*job)) {
        if let Some(attempt) = attempt_charged_wrongly(&head.job_history(record.id), &record.attempts) {
            return Err(format!("{attempt} was stopped by no fault of its own, but was charged a retry"));
        }
        if record.state == JobState::Failed && record.latest().is_some_and(failed_by_cluster) {
            return Err(format!("job {} failed because of what others did to its GPU", record.id));
        }
    }
    Ok(())
}

/// The first attempt that was charged wrongly, as far as the events tell; a long history lacks its middle.
pub(crate) fn attempt_charged_wrongly(history: &[JobEvent], attempts: &[AttemptRecord]) -> Option<AttemptId> {
    let mut before = (0, 0);
    for event in history {
        let JobEventKind::Requeued { attempt, failures, .. } = event.kind else { continue };
        let (number, paid) = std::mem::replace(&mut before, (attempt.attempt, failures));
        let ended = attempts.iter().find(|it| it.attempt == attempt.attempt);
        if number + 1 == attempt.attempt && failures > paid && ended.is_some_and(failed_by_cluster) {
            return Some(attempt);
        }
    }
    None
}

fn failed_by_cluster(attempt: &AttemptRecord) -> bool {
    attempt.stopped.is_some_and(is_fault_of_cluster)
}

const fn is_fault_of_cluster(why: StopReason) -> bool {
    match why {
        StopReason::MpsFaultVictim | StopReason::DeviceLost | StopReason::Unenforced => true,
        StopReason::Cancelled
        | StopReason::TimeLimit
        | StopReason::Requeued
        | StopReason::GangBroken
        | StopReason::Preempted
        | StopReason::Reclaimed
        | StopReason::Superseded
        | StopReason::Orphaned
        | StopReason::MpsFault
        | StopReason::GpuMemory
        | StopReason::Killed
        | StopReason::ApplicationEnded
        | StopReason::Stalled
        | StopReason::Idle => false,
    }
}

/// Checks that every query about known jobs is answered.
pub(crate) fn check_answers(head: &Head, now: Time, jobs: &[JobId]) -> Result<(), String> {
    let jobs: Vec<JobId> = jobs.iter().copied().filter(|job| head.at(now).record(*job).is_some()).collect();
    let filter = Filter { limit: 1_000, ..Filter::default() };
    let known: Vec<JobRevision> = jobs.iter().map(|job| JobRevision { job: *job, revision: 0 }).collect();
    let refused =
        |question: &str, refusal: cohabit_types::Refusal| Err(format!("{question} was refused: {refusal}"));
    let (_nodes, _page) = (head.node_records(), head.at(now).list(&filter));
    if let Err(refusal) = head.at(now).show(&jobs) {
        return refused("show", refusal);
    }
    if let Err(refusal) = head.at(now).changed_since(&known) {
        return refused("watch", refusal);
    }
    for job in jobs {
        if let Err(refusal) = head.at(now).explain(job) {
            return refused(&format!("explain {job}"), refusal);
        }
    }
    Ok(())
}
