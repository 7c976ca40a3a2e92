//! One rank on this worker: waiting for its GPUs, starting, running, or ended and not yet acknowledged.
//!
//! Of what was ordered only the terms are kept that are still needed: how to stop it, and when.

use cohabit_types::{
    DeviceId, Enforcement, EnforcementRequirement, HeldRankPhase, Progress, RankId, Report, Span, Stop,
    StopReason, Time,
};

use crate::stopping::StopSequence;
use crate::watchdog::MemoryWatchdog;
use crate::{FoundRank, GpuAccess, RankExit, RankStart, Stopping};

/// A rank that this worker holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Held {
    pub(crate) life: RankState,
    /// The last that was heard of it.
    pub(crate) progress: Option<Progress>,
    pub(crate) devices: Vec<DeviceId>,
    /// How it comes to its GPUs; nothing while it waits for them.
    pub(crate) access: GpuAccess,
    /// Whether it runs only where its limits are enforced.
    pub(crate) limits: EnforcementRequirement,
    /// Whether they are, once that is known.
    pub(crate) enforcement: Option<Enforcement>,
    /// As whom it runs, where its user has no account here.
    pub(crate) private_uid: Option<u32>,
    /// Where nothing else limits its memory.
    pub(crate) watchdog: Option<MemoryWatchdog>,
    stop: Stop,
    time_limit: Option<Span>,
}

/// How far a rank is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RankState {
    /// Its GPUs are not ready for it: this is what will be started.
    Waiting(Box<RankStart>),
    /// Its executor is being started; a stop that was ordered meanwhile follows its start.
    Starting { stop: Option<StopReason> },
    /// Its process runs.
    Running { started_at: Time, sequence: StopSequence },
    /// It ended; kept until the head has acknowledged it.
    Ended(RankExit),
}

impl Held {
    fn new(life: RankState, start: &RankStart) -> Held {
        Held {
            life,
            progress: None,
            devices: start.devices.clone(),
            access: start.access,
            limits: start.spec.demand.limits,
            enforcement: None,
            private_uid: start.private_uid,
            watchdog: watchdog(start.access),
            stop: start.spec.stop,
            time_limit: start.spec.time_limit,
        }
    }

    pub(crate) fn waiting(start: RankStart) -> Held {
        let held = Held::new(RankState::Starting { stop: None }, &start);
        Held { life: RankState::Waiting(Box::new(start)), ..held }
    }

    /// Its GPUs are ready: what is to be started now, if it has waited for that.
    pub(crate) fn release(&mut self, access: GpuAccess) -> Option<Box<RankStart>> {
        match std::mem::replace(&mut self.life, RankState::Starting { stop: None }) {
            RankState::Waiting(mut start) => {
                (self.access, self.watchdog) = (access, watchdog(access));
                start.access = access;
                Some(start)
            }
            life @ (RankState::Starting { .. } | RankState::Running { .. } | RankState::Ended(_)) => {
                self.life = life;
                None
            }
        }
    }

    /// What an earlier daemon left behind.
    pub(crate) fn found(found: FoundRank) -> Held {
        let mut held = Held::new(RankState::Starting { stop: None }, &found.start);
        held.progress = found.progress;
        held.life = match found.ending {
            None => held.running(found.started_at, found.stopping),
            Some(ending) => RankState::Ended(ending),
        };
        held
    }

    /// Its process runs since `started_at`.
    pub(crate) fn start(&mut self, started_at: Time) {
        self.life = self.running(started_at, None);
    }

    /// It ended; the first reason to stop it is the one that is told. The same, if its executor does not know
    /// it.
    pub(crate) fn end(&mut self, ending: RankExit) -> Option<StopReason> {
        let stopped = self.stop_reason().or(ending.stopped);
        self.life = RankState::Ended(RankExit { stopped, ..ending });
        stopped.filter(|_| stopped != ending.stopped)
    }

    pub(crate) const fn is_live(&self) -> bool {
        match self.life {
            RankState::Waiting(_) | RankState::Starting { .. } | RankState::Running { .. } => true,
            RankState::Ended(_) => false,
        }
    }

    pub(crate) const fn phase(&self) -> HeldRankPhase {
        match self.life {
            RankState::Waiting(_) | RankState::Starting { .. } => HeldRankPhase::Starting,
            RankState::Running { started_at, .. } => HeldRankPhase::Running(started_at),
            RankState::Ended(_) => HeldRankPhase::Ended,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        match &self.life {
            RankState::Running { sequence, .. } => sequence.deadline(),
            RankState::Waiting(_) | RankState::Starting { .. } | RankState::Ended(_) => None,
        }
    }

    /// What the head has to know of it, as often as it takes.
    pub(crate) fn report(&self, rank: RankId) -> Option<Report> {
        match &self.life {
            RankState::Waiting(_) | RankState::Starting { .. } => None,
            RankState::Running { started_at, .. } => Some(Report::Started { rank, at: *started_at }),
            RankState::Ended(ending) => Some(Report::Ended {
                rank,
                outcome: ending.outcome.clone(),
                stopped: ending.stopped,
                progress: self.progress.clone(),
                at: ending.at,
            }),
        }
    }

    /// Whether its limits are enforced, while it lives and that is known.
    pub(crate) fn report_sharing(&self, rank: RankId) -> Option<Report> {
        let enforcement = self.enforcement.clone().filter(|_| self.is_live())?;
        Some(Report::Sharing { rank, enforcement })
    }

    /// As whom it runs, while it lives and there is something to tell of that.
    pub(crate) fn report_user(&self, rank: RankId) -> Option<Report> {
        let uid = self.private_uid.filter(|_| self.is_live())?;
        Some(Report::PrivateUser { rank, uid })
    }

    fn stop_reason(&self) -> Option<StopReason> {
        match &self.life {
            RankState::Waiting(_) => None,
            RankState::Starting { stop } => *stop,
            RankState::Running { sequence, .. } => sequence.stopping().map(|stopping| stopping.why),
            RankState::Ended(ending) => ending.stopped,
        }
    }

    fn running(&self, started_at: Time, stopping: Option<Stopping>) -> RankState {
        let limit_at = self.time_limit.map(|limit| started_at + limit);
        RankState::Running { started_at, sequence: StopSequence::new(self.stop, limit_at, stopping) }
    }
}

const fn watchdog(access: GpuAccess) -> Option<MemoryWatchdog> {
    match access {
        GpuAccess::TimeSliced(limit) => Some(MemoryWatchdog::new(limit)),
        GpuAccess::None | GpuAccess::Exclusive | GpuAccess::Mps(_) => None,
    }
}
