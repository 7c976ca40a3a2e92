//! One rank on this worker: waiting for its code and its GPUs, starting, running, or ended and not yet
//! acknowledged.
//!
//! Of the order only what is still needed is kept: how and when to stop the rank.

use std::collections::BTreeMap;

use cohabit_types::{
    AttemptId, Bytes, DeviceId, DeviceUsage, Enforcement, EnforcementRequirement, HeldRankPhase,
    IDLE_WARNING, Outcome, Progress, RankId, Report, Span, StallPolicy, StartFailure, Stop, StopReason, Time,
};

use crate::activity_meter::ActivityMeter;
use crate::interface::{FoundRank, GpuAccess, MpsLimits, RankExit, RankStart, Stopping};
use crate::memory_watchdog::MemoryWatchdog;
use crate::stall_watch::StallWatch;
use crate::start_sequence::StartSequence;
use crate::stopping::StopSequence;
use crate::usage_meter::UsageMeter;

/// What a process may hold beyond its limit under MPS before its rank is stopped: a CUDA context and what the
/// driver keeps for it. It is not documented how much of that counts, so this is generous; for many processes
/// it is at most half of what the rank may take, so that they do not double it.
const CONTEXT_MEMORY: Bytes = Bytes(1 << 30);

/// A rank that this worker holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankEntry {
    pub(crate) state: RankState,
    /// Its last progress.
    pub(crate) progress: Option<Progress>,
    pub(crate) devices: Vec<DeviceId>,
    /// The attempt to which the copy of code belongs that it uses.
    pub(crate) code_owner: AttemptId,
    /// Its access to its GPUs; `None` while it waits for them.
    pub(crate) access: GpuAccess,
    /// Whether it requires enforced limits.
    pub(crate) limits: EnforcementRequirement,
    /// Whether its limits are enforced, once that is known.
    pub(crate) enforcement: Option<Enforcement>,
    /// Its user id, if its user has no account on this host.
    pub(crate) private_uid: Option<u32>,
    /// Measure what it does with its GPUs, once these have been read while it ran.
    pub(crate) meters: BTreeMap<DeviceId, UsageMeter>,
    /// Since when its attempt has done nothing, once that was worth telling. Kept with rank 0.
    pub(crate) idle_noticed: Option<Time>,
    /// After how long that is worth telling.
    pub(crate) idle_after: Span,
    /// Watches what else it does, if its job is interactive.
    pub(crate) activity: Option<ActivityMeter>,
    /// Limits its memory where nothing else does.
    pub(crate) watchdog: Option<MemoryWatchdog>,
    stop: Stop,
    time_limit: Option<Span>,
    stall: Option<StallPolicy>,
}

/// The state of a rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RankState {
    /// Its code or its GPUs are not ready; this is what will be started.
    Waiting(Box<RankStart>),
    /// Its executor starts it.
    Starting(StartSequence),
    /// Its process runs.
    Running {
        started_at: Time,
        sequence: StopSequence,
        /// Watches its steps, if its job has a stall timeout.
        stall: Option<StallWatch>,
    },
    /// It has ended; kept until the head has acknowledged it.
    Ended(RankExit),
}

impl RankEntry {
    pub(crate) fn waiting(start: RankStart) -> RankEntry {
        RankEntry::new(Box::new(start), RankState::Waiting)
    }

    /// A rank that an earlier daemon left.
    pub(crate) fn found(found: FoundRank) -> RankEntry {
        let FoundRank { start, started_at, stopping, ending, progress } = found;
        let state = match ending {
            None => {
                let sequence = stop_sequence(start.spec.stop, start.spec.time_limit, started_at, stopping);
                let stall = start.spec.stall;
                let stall = stall.map(|policy| StallWatch::new(policy, started_at, progress.as_ref()));
                RankState::Running { started_at, sequence, stall }
            }
            Some(ending) => RankState::Ended(ending),
        };
        RankEntry { progress, ..RankEntry::new(Box::new(start), |_| state) }
    }

    fn new(start: Box<RankStart>, state: impl FnOnce(Box<RankStart>) -> RankState) -> RankEntry {
        RankEntry {
            progress: None,
            devices: start.devices.clone(),
            code_owner: start.code_owner(),
            access: start.access,
            limits: start.spec.demand.limits,
            enforcement: None,
            private_uid: start.private_uid,
            meters: BTreeMap::new(),
            idle_noticed: None,
            idle_after: start.idle_after.unwrap_or(IDLE_WARNING),
            activity: start.idle_after.map(ActivityMeter::new),
            watchdog: watchdog(start.access, start.spec.demand.gpu_processes),
            stop: start.spec.stop,
            time_limit: start.spec.time_limit,
            stall: start.spec.stall,
            state: state(start),
        }
    }

    /// Its GPUs are ready. Returns what is to be started, if it was waiting.
    pub(crate) fn release(&mut self, now: Time, access: GpuAccess) -> Option<Box<RankStart>> {
        let starting = RankState::Starting(StartSequence::new(now, self.time_limit));
        match std::mem::replace(&mut self.state, starting) {
            RankState::Waiting(mut start) => {
                let processes = start.spec.demand.gpu_processes;
                (self.access, self.watchdog) = (access, watchdog(access, processes));
                start.access = access;
                Some(start)
            }
            state @ (RankState::Starting(_) | RankState::Running { .. } | RankState::Ended(_)) => {
                self.state = state;
                None
            }
        }
    }

    /// Its process has been running since `started_at`.
    pub(crate) fn start(&mut self, started_at: Time) {
        let sequence = stop_sequence(self.stop, self.time_limit, started_at, None);
        let stall = self.stall.map(|policy| StallWatch::new(policy, started_at, None));
        self.state = RankState::Running { started_at, sequence, stall };
    }

    /// It reported progress.
    pub(crate) fn progressed(&mut self, now: Time, progress: Progress) {
        if let RankState::Running { stall: Some(watch), .. } = &mut self.state {
            watch.step(now, progress.step);
        }
        let is_step = self.progress.as_ref().is_none_or(|known| known.step != progress.step);
        if let Some(activity) = self.activity.as_mut().filter(|_| is_step) {
            activity.acted(now);
        }
        self.progress = Some(progress);
    }

    /// It has ended. The first reason to stop it is the one that counts; returns it if the executor did not
    /// know it.
    pub(crate) fn end(&mut self, ending: RankExit) -> Option<StopReason> {
        let stopped = self.stop_reason().or(ending.stopped);
        self.state = RankState::Ended(RankExit { stopped, ..ending });
        stopped.filter(|_| stopped != ending.stopped)
    }

    pub(crate) const fn is_live(&self) -> bool {
        match self.state {
            RankState::Waiting(_) | RankState::Starting(_) | RankState::Running { .. } => true,
            RankState::Ended(_) => false,
        }
    }

    pub(crate) const fn phase(&self) -> HeldRankPhase {
        match self.state {
            RankState::Waiting(_) | RankState::Starting(_) => HeldRankPhase::Starting,
            RankState::Running { started_at, .. } => HeldRankPhase::Running(started_at),
            RankState::Ended(_) => HeldRankPhase::Ended,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        match &self.state {
            RankState::Starting(sequence) => Some(sequence.deadline()),
            RankState::Running { sequence, .. } => sequence.deadline(),
            RankState::Waiting(_) | RankState::Ended(_) => None,
        }
    }

    /// The report about its state, repeated until the head has acknowledged its end.
    pub(crate) fn report(&self, rank: RankId) -> Option<Report> {
        match &self.state {
            RankState::Waiting(_) | RankState::Starting(_) => None,
            RankState::Running { started_at, .. } => Some(Report::Started { rank, at: *started_at }),
            RankState::Ended(ending) => Some(Report::Ended {
                rank,
                outcome: ending.outcome.clone(),
                stopped: ending.stopped,
                progress: self.progress.clone(),
                at: ending.at,
                usage: self.usage(ending.at),
            }),
        }
    }

    /// What it has done with its GPUs until `end`, as far as that was measured.
    pub(crate) fn usage(&self, end: Time) -> Vec<DeviceUsage> {
        self.meters.iter().filter_map(|(device, meter)| meter.usage(device, end)).collect()
    }

    /// The report whether its limits are enforced, while it lives and if that is known.
    pub(crate) fn report_sharing(&self, rank: RankId) -> Option<Report> {
        let enforcement = self.enforcement.clone().filter(|_| self.is_live())?;
        Some(Report::Sharing { rank, enforcement })
    }

    /// The report about its user id, while it lives and if it has one of its own.
    pub(crate) fn report_user(&self, rank: RankId) -> Option<Report> {
        let uid = self.private_uid.filter(|_| self.is_live())?;
        Some(Report::PrivateUser { rank, uid })
    }

    fn stop_reason(&self) -> Option<StopReason> {
        match &self.state {
            RankState::Waiting(_) => None,
            RankState::Starting(sequence) => sequence.stop(),
            RankState::Running { sequence, .. } => sequence.stopping().map(|stopping| stopping.why),
            RankState::Ended(ending) => ending.stopped,
        }
    }
}

fn stop_sequence(
    stop: Stop,
    time_limit: Option<Span>,
    started_at: Time,
    stopping: Option<Stopping>,
) -> StopSequence {
    let limit_at = time_limit.map(|limit| started_at + limit);
    StopSequence::new(stop, limit_at, stopping)
}

/// MPS limits each process, but not how many there are, and does not count all of what the driver does.
fn watchdog(access: GpuAccess, processes: u32) -> Option<MemoryWatchdog> {
    match access {
        GpuAccess::TimeSliced(limit) => Some(MemoryWatchdog::new(limit)),
        GpuAccess::Mps(MpsLimits { memory, percentage: _ }) => {
            let processes = u64::from(processes.max(1));
            let limit = memory.0.saturating_mul(processes);
            let contexts = CONTEXT_MEMORY.0.saturating_mul(processes).min(limit / 2).max(CONTEXT_MEMORY.0);
            Some(MemoryWatchdog::new(Bytes(limit.saturating_add(contexts))))
        }
        GpuAccess::None | GpuAccess::Exclusive => None,
    }
}

/// The end of a rank that was stopped while it waited for its code or its GPUs.
pub(crate) fn never_started(now: Time, why: StopReason) -> RankExit {
    let failure = StartFailure::Other("it was stopped before it could start".into());
    RankExit { outcome: Outcome::NotStarted(failure), stopped: Some(why), at: now }
}
