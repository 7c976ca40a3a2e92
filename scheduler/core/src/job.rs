//! One job, or one member of an array: which phase of its life it is in, with the data of that phase.
//!
//! This module holds the data and the questions that it answers by itself. `job_state` changes it, and keeps
//! the head's sets and counts in step.

use std::collections::BTreeSet;

use cohabit_policy::AttainedTime;
use cohabit_types::{
    AttemptId, DeviceId, Enforcement, HostShare, JobEvent, JobEventKind, JobState, NodeId, Outcome,
    Placement, Progress, ReasonCode, Signal, Slowdown, Span, StopReason, Time,
};

use crate::terminal_state::TerminalState;

/// A job that is requeued for ever must not fill the memory: its first event and the latest ones are kept.
const MAX_EVENTS: usize = 100;
/// Dropped together, so that the rest does not move up for each new event.
const EVENTS_DROPPED_AT_ONCE: usize = 25;
/// A long job's cores and memory may change often: of changes in a row the latest ones are kept.
const MAX_ALLOTMENTS_IN_A_ROW: usize = 10;
/// How often a job is reclaimed in a day at most.
const RECLAIMS_A_DAY: usize = 3;
/// Of the attempts that ended the latest ones are kept.
const MAX_ENDED_ATTEMPTS: usize = 256;

/// Where the ranks of an attempt find each other: the node of rank 0, and a port there.
pub type RendezvousEndpoint = (NodeId, u16);

/// One job, or one member of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The phase that it is in. A live attempt exists in `Running` and `Stopping` only.
    pub status: JobStatus,
    /// The latest attempts that ended, the oldest first.
    pub ended_attempts: Vec<EndedAttempt>,
    /// What the ended attempts had that are not kept any more.
    pub attained_before: AttainedTime,
    /// How the last attempt ended that completed or failed by itself. Not part of the end of the job: while a
    /// job waits for its next attempt, it shows how the previous one ended.
    pub last_exit: Option<JobExit>,
    /// Attempts that failed by their own fault since a user last queued the job.
    pub own_failures: u32,
    /// Attempts that ended because of their node, their device or another job.
    pub node_failures: u32,
    /// The first attempt that has its GPU alone, whatever memory was predicted for the job.
    pub exclusive_from_attempt: Option<u32>,
    /// What happened to it since its submission, the oldest first.
    pub events: Vec<JobEvent>,
}

/// The phase of a job's life.
#[derive(Debug, Clone, PartialEq)]
pub enum JobStatus {
    /// Pending or held: it has no place in the cluster.
    Waiting(WaitingJob),
    /// Its live attempt holds its place in the cluster.
    Running(Box<Attempt>),
    /// Its live attempt is being stopped for this reason.
    Stopping(Box<Attempt>, StopReason),
    /// It ended, and stays so unless a user requeues it.
    Ended(EndedJob),
}

/// What keeps a job from running, apart from room in the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingJob {
    /// Whether a user has to release it first.
    pub held: bool,
    /// Whether it waits for the jobs on which its submission depends.
    pub has_dependencies: bool,
    /// The earliest time at which it may start.
    pub not_before: Option<Time>,
    /// Since when only room in the cluster has kept it waiting; has no meaning while something else does.
    pub eligible_at: Time,
    /// What a worker holds of it in advance, if one does.
    pub prefetched: Option<Box<PrefetchedAttempt>>,
}

/// An attempt that was ordered in advance.
#[derive(Debug, Clone, PartialEq)]
pub struct PrefetchedAttempt {
    /// As it will be, but for the time of its start.
    pub attempt: Attempt,
    /// It begins when this one has ended.
    pub after: AttemptId,
    /// Why it is to end at once: a user has cancelled the job.
    pub cancelled: Option<StopReason>,
}

/// How and when a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedJob {
    /// The state that it ended in.
    pub state: TerminalState,
    /// Why.
    pub reason: ReasonCode,
    /// When.
    pub at: Time,
}

/// How the processes of an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobExit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(Signal),
}

/// One try to run a job on a set of devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Counts a job's attempts, from 1.
    pub number: u32,
    /// The devices that it holds.
    pub placement: Placement,
    /// Where its ranks find each other.
    pub rendezvous: Option<RendezvousEndpoint>,
    /// What it keeps from others, in thousandths of a GPU.
    pub holds: u64,
    /// When it was placed.
    pub started_at: Time,
    /// When it was ordered, if that was in advance.
    pub ordered_at: Option<Time>,
    /// How long the policy expected it to run there.
    pub expected_runtime: Option<Span>,
    /// The slowdown by jobs on the same devices that was predicted when it was placed.
    pub predicted_slowdown: Option<Slowdown>,
    /// Why a worker stopped a rank of it, as the worker reported.
    pub stop_reported: Option<StopReason>,
    /// Its ranks, by number.
    pub ranks: Vec<Rank>,
    /// The first rank that failed, in time.
    pub first_failure: Option<u32>,
    /// The progress that it last reported with its end.
    pub progress: Option<Progress>,
    /// When its cores or its host memory last changed; none if they have not since it was placed.
    pub allotted_at: Option<Time>,
    /// The change of its cores and its host memory that its worker has not answered yet.
    pub ordered_allotment: Option<OrderedAllotment>,
    /// Since when it does nothing, by the head's clock, once its worker told.
    pub idle_since: Option<Time>,
}

/// A change of the cores and the host memory of an attempt that its worker was told to make. Until the
/// worker has answered, the attempt holds the larger of both amounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedAllotment {
    /// What it had.
    pub from: HostShare,
    /// What it is to have.
    pub to: HostShare,
    /// Why the policy chose so.
    pub why: String,
}

/// An attempt all of whose ranks ended or were given up.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedAttempt {
    /// The attempt.
    pub attempt: Attempt,
    /// Why the head had ordered its end, if it had.
    pub stop_requested: Option<StopReason>,
    /// When its last rank ended.
    pub at: Time,
}

/// One process of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// The node that it runs on.
    pub node: NodeId,
    /// The node's name when the attempt was placed.
    pub node_name: String,
    /// The devices that it holds.
    pub devices: Vec<DeviceId>,
    /// How far it is.
    pub phase: RankPhase,
    /// Whether its limits on a shared device are enforced, once the worker has said so.
    pub enforcement: Option<Enforcement>,
    /// Whether its claims of cores and host memory are enforced, if it claims any.
    pub host_limits: Option<Enforcement>,
    /// The user id that it runs as where its user has no account on the node.
    pub private_uid: Option<u32>,
}

/// How far a rank is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankPhase {
    /// Its worker was, or will be, told to start it.
    Ordered,
    /// Its worker reported that it runs.
    Running,
    /// It ended, or was given up.
    Ended(Outcome),
}

/// An attempt, live or ended, with what its job knows about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptRef<'j> {
    pub(crate) attempt: &'j Attempt,
    /// Why the head ordered its end, if it did.
    pub(crate) stop_requested: Option<StopReason>,
    /// When it ended; none while it is live.
    pub(crate) ended_at: Option<Time>,
}

impl JobExit {
    pub(crate) const fn code(self) -> Option<i32> {
        match self {
            JobExit::Code(code) => Some(code),
            JobExit::Signal(_) => None,
        }
    }

    pub(crate) const fn signal(self) -> Option<Signal> {
        match self {
            JobExit::Code(_) => None,
            JobExit::Signal(signal) => Some(signal),
        }
    }
}

impl Rank {
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.phase, RankPhase::Ended(_))
    }

    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            RankPhase::Ended(outcome) => Some(outcome),
            RankPhase::Ordered | RankPhase::Running => None,
        }
    }
}

impl Attempt {
    /// The nodes on which ranks of it are live, each once.
    pub(crate) fn live_nodes(&self) -> BTreeSet<NodeId> {
        self.ranks.iter().filter(|rank| rank.is_live()).map(|rank| rank.node).collect()
    }

    /// The outcome of the first rank that failed.
    pub(crate) fn first_failed_outcome(&self) -> Option<&Outcome> {
        self.first_failure.and_then(|rank| self.ranks.get(rank as usize)?.outcome())
    }

    /// Whether every rank ended with success.
    fn succeeded(&self) -> bool {
        self.ranks.iter().all(|rank| rank.outcome().is_some_and(Outcome::succeeded))
    }
}

impl EndedAttempt {
    /// About how many bytes it takes.
    fn weight(&self) -> usize {
        let parts = self.attempt.placement.parts.iter();
        let devices = parts.map(|part| size_of_val(part) + part.devices.len() * size_of::<DeviceId>());
        let ranks = self.attempt.ranks.iter().map(|rank| {
            let outcome = rank.outcome().map_or(0, Outcome::weight);
            size_of::<Rank>() + rank.node_name.len() + rank.devices.len() * size_of::<DeviceId>() + outcome
        });
        size_of::<EndedAttempt>() + devices.sum::<usize>() + ranks.sum::<usize>()
    }

    /// What it had, besides earlier ones.
    fn added_to(&self, sum: AttainedTime) -> AttainedTime {
        let held = self.at.since(self.attempt.started_at);
        let slowdown = self.attempt.predicted_slowdown.map_or(1.0, Slowdown::as_f64);
        let worked = Span::from_secs_f64(held.as_secs_f64() / slowdown.max(1.0));
        AttainedTime { held: sum.held + held, worked: sum.worked + worked }
    }

    pub(crate) fn as_ref(&self) -> AttemptRef<'_> {
        AttemptRef { attempt: &self.attempt, stop_requested: self.stop_requested, ended_at: Some(self.at) }
    }
}

impl AttemptRef<'_> {
    pub(crate) const fn is_live(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Why it was stopped, as far as that explains its end: a worker reported it, or the head ordered it and
    /// the attempt did not succeed before the order arrived.
    pub(crate) fn effective_stop(&self) -> Option<StopReason> {
        match (self.attempt.stop_reported, self.stop_requested) {
            // What the worker reported is what broke the gang.
            (Some(reported), Some(StopReason::GangBroken)) => Some(reported),
            (Some(_), Some(requested)) => Some(requested),
            (Some(reported), None) => Some(reported),
            (None, Some(StopReason::Requeued)) => Some(StopReason::Requeued),
            (None, Some(requested)) => (!self.attempt.succeeded()).then_some(requested),
            (None, None) => None,
        }
    }
}

/// Who caused a fault on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultOrigin {
    /// The job itself.
    Own,
    /// Another job, the device, or nobody.
    Other,
}

/// Who caused the fault for which a worker stopped a rank; none if no fault of a device was the reason.
pub(crate) const fn device_fault(why: StopReason) -> Option<FaultOrigin> {
    match why {
        StopReason::MpsFault | StopReason::GpuMemory => Some(FaultOrigin::Own),
        StopReason::MpsFaultVictim | StopReason::DeviceLost | StopReason::Unenforced => {
            Some(FaultOrigin::Other)
        }
        StopReason::Cancelled
        | StopReason::TimeLimit
        | StopReason::Requeued
        | StopReason::GangBroken
        | StopReason::Preempted
        | StopReason::Reclaimed
        | StopReason::Superseded
        | StopReason::Orphaned
        | StopReason::Killed
        | StopReason::ApplicationEnded
        | StopReason::Stalled
        | StopReason::Idle => None,
    }
}

impl WaitingJob {
    /// Waits for nothing but room, from this time on.
    pub(crate) const fn since(eligible_at: Time) -> WaitingJob {
        WaitingJob { held: false, has_dependencies: false, not_before: None, eligible_at, prefetched: None }
    }
}

impl Job {
    /// A job to which nothing has happened yet.
    pub(crate) const fn new(waiting: WaitingJob) -> Job {
        Job {
            status: JobStatus::Waiting(waiting),
            ended_attempts: Vec::new(),
            attained_before: AttainedTime { held: Span::ZERO, worked: Span::ZERO },
            last_exit: None,
            own_failures: 0,
            node_failures: 0,
            exclusive_from_attempt: None,
            events: Vec::new(),
        }
    }

    /// What its ended attempts had.
    pub(crate) fn attained(&self) -> AttainedTime {
        self.ended_attempts.iter().fold(self.attained_before, |sum, ended| ended.added_to(sum))
    }

    /// About how many bytes its history takes: its events, and its ended attempts.
    pub(crate) fn history_weight(&self) -> u64 {
        let events: usize = self.events.iter().map(JobEvent::weight).sum();
        events as u64 + self.attempts_weight()
    }

    /// About how many bytes its ended attempts take.
    pub(crate) fn attempts_weight(&self) -> u64 {
        self.ended_attempts.iter().map(EndedAttempt::weight).sum::<usize>() as u64
    }

    /// Appends to its history. Returns by how many bytes that grew, and by how many it shrank.
    pub(crate) fn record(&mut self, event: JobEvent) -> (u64, u64) {
        let removed: usize = self.superseded_by(&event.kind).map(|event| event.weight()).sum();
        let added = event.weight();
        self.events.push(event);
        (added as u64, removed as u64)
    }

    /// The events that a new one of this kind replaces.
    ///
    /// Of many holds and releases in a row only the latest two are kept, of many changes of what it holds the
    /// latest few, and of a history that became too long the first event and the latest ones.
    fn superseded_by(&mut self, kind: &JobEventKind) -> std::vec::Drain<'_, JobEvent> {
        let is_hold = |kind: &JobEventKind| matches!(kind, JobEventKind::Held | JobEventKind::Released);
        let events = self.events.len();
        match self.events.as_slice() {
            [.., first, second] if [&first.kind, &second.kind, kind].into_iter().all(is_hold) => {
                self.events.drain(events - 2..)
            }
            latest if ends_in_allotments(latest) && is_allotment(kind) => {
                let oldest = events - MAX_ALLOTMENTS_IN_A_ROW;
                self.events.drain(oldest..=oldest)
            }
            _ if events >= MAX_EVENTS => self.events.drain(1..=EVENTS_DROPPED_AT_ONCE),
            _ => self.events.drain(events..),
        }
    }

    /// The state that people and scripts see.
    #[must_use]
    pub const fn state(&self) -> JobState {
        match &self.status {
            JobStatus::Waiting(WaitingJob { held: true, .. }) => JobState::Held,
            JobStatus::Waiting(WaitingJob { held: false, .. }) => JobState::Pending,
            JobStatus::Running(_) => JobState::Running,
            JobStatus::Stopping(..) => JobState::Completing,
            JobStatus::Ended(end) => end.state.job_state(),
        }
    }

    /// The code of why it is in its state, as far as the job itself knows; of a waiting job the queue knows
    /// more.
    pub(crate) const fn reason_code(&self) -> ReasonCode {
        match &self.status {
            JobStatus::Waiting(_) => ReasonCode::WaitingForTurn,
            JobStatus::Running(_) => ReasonCode::Running,
            JobStatus::Stopping(..) => ReasonCode::Stopping,
            JobStatus::Ended(end) => end.reason,
        }
    }

    pub(crate) const fn ended(&self) -> Option<&EndedJob> {
        match &self.status {
            JobStatus::Ended(end) => Some(end),
            JobStatus::Waiting(_) | JobStatus::Running(_) | JobStatus::Stopping(..) => None,
        }
    }

    pub(crate) const fn waiting(&self) -> Option<&WaitingJob> {
        match &self.status {
            JobStatus::Waiting(waiting) => Some(waiting),
            JobStatus::Running(_) | JobStatus::Stopping(..) | JobStatus::Ended(_) => None,
        }
    }

    pub(crate) const fn waiting_mut(&mut self) -> Option<&mut WaitingJob> {
        match &mut self.status {
            JobStatus::Waiting(waiting) => Some(waiting),
            JobStatus::Running(_) | JobStatus::Stopping(..) | JobStatus::Ended(_) => None,
        }
    }

    pub(crate) fn live_attempt(&self) -> Option<&Attempt> {
        match &self.status {
            JobStatus::Running(attempt) | JobStatus::Stopping(attempt, _) => Some(attempt),
            JobStatus::Waiting(_) | JobStatus::Ended(_) => None,
        }
    }

    pub(crate) fn live_attempt_mut(&mut self) -> Option<&mut Attempt> {
        match &mut self.status {
            JobStatus::Running(attempt) | JobStatus::Stopping(attempt, _) => Some(attempt),
            JobStatus::Waiting(_) | JobStatus::Ended(_) => None,
        }
    }

    /// Why its live attempt is being stopped, if it is.
    pub(crate) const fn stop_requested(&self) -> Option<StopReason> {
        match &self.status {
            JobStatus::Stopping(_, why) => Some(*why),
            JobStatus::Waiting(_) | JobStatus::Running(_) | JobStatus::Ended(_) => None,
        }
    }

    /// Its live attempt with what the job knows about it.
    fn live(&self) -> Option<AttemptRef<'_>> {
        let attempt = self.live_attempt()?;
        Some(AttemptRef { attempt, stop_requested: self.stop_requested(), ended_at: None })
    }

    /// All its attempts for a change, the oldest first.
    pub(crate) fn attempts_mut(&mut self) -> impl Iterator<Item = &mut Attempt> {
        let live = match &mut self.status {
            JobStatus::Running(attempt) | JobStatus::Stopping(attempt, _) => Some(&mut **attempt),
            JobStatus::Waiting(_) | JobStatus::Ended(_) => None,
        };
        self.ended_attempts.iter_mut().map(|ended| &mut ended.attempt).chain(live)
    }

    /// All its attempts, the oldest first.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = AttemptRef<'_>> {
        self.ended_attempts.iter().map(EndedAttempt::as_ref).chain(self.live())
    }

    /// Its latest attempt, live or ended.
    pub(crate) fn last_attempt(&self) -> Option<AttemptRef<'_>> {
        self.live().or_else(|| self.ended_attempts.last().map(EndedAttempt::as_ref))
    }

    /// Its attempt with this number.
    pub(crate) fn attempt(&self, number: u32) -> Option<AttemptRef<'_>> {
        self.attempts().find(|it| it.attempt.number == number)
    }

    pub(crate) fn attempt_count(&self) -> u32 {
        self.last_attempt().map_or(0, |it| it.attempt.number)
    }

    /// How many attempts it had: numbers may be passed over where a backup was restored.
    pub(crate) fn attempts_made(&self) -> usize {
        match self.ended_attempts.len() < MAX_ENDED_ATTEMPTS {
            true => self.attempts().count(),
            false => self.attempt_count() as usize,
        }
    }

    /// Whether its last attempt was stopped to make room for another job.
    pub(crate) fn was_preempted(&self) -> bool {
        let is_preemption = |why| matches!(why, StopReason::Preempted | StopReason::Reclaimed);
        self.last_attempt().is_some_and(|it| it.stop_requested.is_some_and(is_preemption))
    }

    /// When it may be reclaimed again: not [`RECLAIMS_A_DAY`] times within one day and once more.
    pub(crate) fn reclaimable_from(&self) -> Time {
        let reclaimed = |it: &&EndedAttempt| it.stop_requested == Some(StopReason::Reclaimed);
        let latest = self.ended_attempts.iter().rev().filter(reclaimed).nth(RECLAIMS_A_DAY - 1);
        latest.map_or(Time::EPOCH, |oldest| oldest.at + Span::from_secs(86_400))
    }

    /// Whether nothing but room in the cluster keeps it waiting.
    pub(crate) fn is_eligible(&self, now: Time) -> bool {
        let is_due = |waiting: &WaitingJob| waiting.not_before.is_none_or(|at| at <= now);
        let is_free = |it: &WaitingJob| !it.held && !it.has_dependencies && it.prefetched.is_none();
        self.waiting().is_some_and(|it| is_free(it) && is_due(it))
    }

    /// Begins to stop the live attempt, unless that has begun already.
    pub(crate) fn begin_stop(&mut self, why: StopReason) {
        let placeholder = JobStatus::Waiting(WaitingJob::since(Time::EPOCH));
        let status = std::mem::replace(&mut self.status, placeholder);
        self.status = match status {
            JobStatus::Running(attempt) => JobStatus::Stopping(attempt, why),
            other @ (JobStatus::Waiting(_) | JobStatus::Stopping(..) | JobStatus::Ended(_)) => other,
        };
    }

    /// Leaves the present phase for one without a live attempt; an attempt that was live ended at `now`.
    pub(crate) fn leave_for(&mut self, status: JobStatus, now: Time) {
        let (attempt, stop_requested) = match std::mem::replace(&mut self.status, status) {
            JobStatus::Running(attempt) => (attempt, None),
            JobStatus::Stopping(attempt, why) => (attempt, Some(why)),
            JobStatus::Waiting(_) | JobStatus::Ended(_) => return,
        };
        if self.ended_attempts.len() >= MAX_ENDED_ATTEMPTS {
            let dropped = self.ended_attempts.remove(0);
            self.attained_before = dropped.added_to(self.attained_before);
        }
        self.ended_attempts.push(EndedAttempt { attempt: *attempt, stop_requested, at: now });
    }
}

const fn is_allotment(kind: &JobEventKind) -> bool {
    matches!(kind, JobEventKind::Allotted { .. })
}

/// Whether the latest events are as many changes of what a job holds as are kept in a row.
fn ends_in_allotments(events: &[JobEvent]) -> bool {
    let latest = events.len().checked_sub(MAX_ALLOTMENTS_IN_A_ROW).map(|first| &events[first..]);
    latest.is_some_and(|latest| latest.iter().all(|event| is_allotment(&event.kind)))
}
