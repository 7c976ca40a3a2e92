//! The worker's state, and what every part of the worker needs of it: reading, reporting, stopping a rank.
//!
//! The other modules add their part of the worker to [`Worker`]: `worker` takes events, `starting` starts
//! ranks, `sharing` looks after MPS daemons, `gpu_monitoring` after samples and errors of GPUs. They call
//! this module; it calls none of them.

use std::collections::BTreeMap;

use cohabit_types::{
    AttemptId, CheckpointResult, CheckpointSource, Device, DeviceId, DeviceKind, HeldRank, Progress, RankId,
    Report, StopReason, Time,
};

use crate::allotment::AllotmentInProgress;
use crate::colocation::ColocationSampler;
use crate::gpu::{Gpu, RankCounts};
use crate::interface::{Config, GpuAccess, MpsOrder, RankExit, WorkerEffect};
use crate::pending_progress::PendingProgress;
use crate::prefetched_order::PrefetchedOrder;
use crate::rank::{RankEntry, RankState, never_started};
use crate::stopping::{StopAction, StopSequence};

/// The worker's state machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    pub(crate) devices: Vec<Device>,
    /// The devices that are real GPUs.
    pub(crate) gpus: BTreeMap<DeviceId, Gpu>,
    pub(crate) ranks: BTreeMap<RankId, RankEntry>,
    /// Attempts that begin when others have ended.
    pub(crate) prefetched: BTreeMap<AttemptId, PrefetchedOrder>,
    /// What was given back, with what it had waited for, until the head has acknowledged that.
    pub(crate) given_back: BTreeMap<AttemptId, AttemptId>,
    pub(crate) colocation: ColocationSampler,
    pub(crate) link: LinkState,
    pub(crate) progress: PendingProgress,
    /// The copies of code here, by the attempt that each belongs to.
    pub(crate) code: BTreeMap<AttemptId, CodeState>,
    /// The checkpoints that live attempts here found elsewhere.
    pub(crate) checkpoints: BTreeMap<AttemptId, CheckpointState>,
    /// When the head was last told how far ranks are with their GPUs.
    pub(crate) usage_reported_at: Option<Time>,
    /// Changes of limits that are being made.
    pub(crate) allotments: BTreeMap<AttemptId, AllotmentInProgress>,
}

/// The copy of the code of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeState {
    /// It is being made.
    Fetching,
    /// It is there.
    Ready,
    /// It is still being made for ranks that have ended. Others wait until it is removed, and are given one
    /// of their own.
    Abandoned,
}

/// The checkpoints for an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckpointState {
    /// They are on their way from there.
    Fetching(CheckpointSource),
    /// What came of them, which the head is told over each link.
    Known(CheckpointSource, CheckpointResult),
}

/// Whether the head can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkState {
    Up,
    Down,
}

impl Worker {
    /// A worker without ranks and without a link.
    #[must_use]
    pub fn new(config: Config) -> Worker {
        let gpus = config.devices.iter().filter(|device| device.kind == DeviceKind::Gpu);
        Worker {
            gpus: gpus.map(|device| (device.id.clone(), Gpu::new(device))).collect(),
            devices: config.devices,
            ranks: BTreeMap::new(),
            prefetched: BTreeMap::new(),
            given_back: BTreeMap::new(),
            colocation: ColocationSampler::default(),
            link: LinkState::Down,
            progress: PendingProgress::new(config.heartbeat),
            code: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            usage_reported_at: None,
            allotments: BTreeMap::new(),
        }
    }

    /// When to send [`WorkerEvent::Alarm`](crate::WorkerEvent::Alarm); at once if that time has passed.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let progress = match self.link {
            LinkState::Up => self.progress.deadline(),
            LinkState::Down => None,
        };
        let services = self.gpus.values().filter_map(Gpu::deadline);
        let ranks = self.ranks.values().filter_map(RankEntry::deadline);
        let others = [progress, self.stall_deadline(), self.prefetch_deadline()];
        ranks.chain(others.into_iter().flatten()).chain(services).min()
    }

    /// All ranks on this host, for the inventory of the next hello.
    #[must_use]
    pub fn held(&self) -> Vec<HeldRank> {
        self.ranks.iter().map(|(rank, held)| HeldRank { rank: *rank, phase: held.phase() }).collect()
    }

    /// All devices in their present condition, for the inventory of the next hello. Later changes are
    /// reported over the link that this hello opens.
    pub fn devices(&mut self) -> Vec<Device> {
        let mut devices = self.devices.clone();
        for device in &mut devices {
            let rank_counts = self.rank_counts(&device.id);
            if let Some(gpu) = self.gpus.get_mut(&device.id) {
                device.condition = gpu.report_condition(rank_counts);
            }
        }
        devices
    }

    pub(crate) fn exited(&mut self, rank: RankId, ending: RankExit, out: &mut Vec<WorkerEffect>) {
        if let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) {
            let (unknown, owner) = (held.end(ending), held.code_owner);
            out.extend(unknown.map(|why| WorkerEffect::Explain(rank, why)));
            self.report_rank(rank, out);
            self.release_code(owner, out);
            self.release_checkpoints(rank.attempt, out);
        }
    }

    /// A copy of code that no live rank uses is not needed any more.
    fn release_code(&mut self, owner: AttemptId, out: &mut Vec<WorkerEffect>) {
        if !self.code.contains_key(&owner) || self.is_code_used(owner) {
            return;
        }
        match self.code.get_mut(&owner) {
            Some(state @ CodeState::Fetching) => *state = CodeState::Abandoned,
            Some(CodeState::Ready) => _ = self.code.remove(&owner),
            Some(CodeState::Abandoned) | None => return,
        }
        out.push(WorkerEffect::ReleaseCode(owner));
    }

    /// Nobody waits for the checkpoints of an attempt whose ranks have ended.
    fn release_checkpoints(&mut self, attempt: AttemptId, out: &mut Vec<WorkerEffect>) {
        if self.ranks_of(attempt).any(|(_, held)| held.is_live()) {
            return;
        }
        match self.checkpoints.remove(&attempt) {
            Some(CheckpointState::Fetching(_)) => out.push(WorkerEffect::AbandonCheckpoints(attempt)),
            Some(CheckpointState::Known(..)) | None => {}
        }
    }

    /// Whether a live rank uses the copy of code of this attempt.
    pub(crate) fn is_code_used(&self, owner: AttemptId) -> bool {
        self.ranks.values().any(|held| held.code_owner == owner && held.is_live())
    }

    /// Stops a rank. One that waits ends at once; one that is being started is stopped as soon as it runs.
    pub(crate) fn stop_rank(
        &mut self,
        now: Time,
        rank: RankId,
        why: StopReason,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(held) = self.ranks.get_mut(&rank) else { return };
        match &mut held.state {
            RankState::Waiting(_) => self.exited(rank, never_started(now, why), out),
            RankState::Starting(sequence) => sequence.begin_stop(now, why),
            RankState::Running { sequence, .. } => advance_stop(rank, sequence, |it| it.begin(now, why), out),
            RankState::Ended(_) => {}
        }
    }

    pub(crate) const fn is_linked(&self) -> bool {
        matches!(self.link, LinkState::Up)
    }

    /// Without a link nothing is reported: everything is reported over the next one.
    pub(crate) fn report_rank(&self, rank: RankId, out: &mut Vec<WorkerEffect>) {
        self.report(self.ranks.get(&rank).and_then(|held| held.report(rank)), out);
    }

    pub(crate) fn report(&self, report: Option<Report>, out: &mut Vec<WorkerEffect>) {
        out.extend(report.filter(|_| self.is_linked()).map(WorkerEffect::Report));
    }

    pub(crate) fn ranks_of(&self, attempt: AttemptId) -> impl Iterator<Item = (&RankId, &RankEntry)> {
        self.ranks.range(attempt.rank(0)..=attempt.rank(u32::MAX))
    }

    pub(crate) fn reporting_rank(&self, attempt: AttemptId) -> Option<(RankId, &Progress)> {
        self.ranks_of(attempt)
            .filter(|(_, held)| held.is_live())
            .find_map(|(rank, held)| Some((*rank, held.progress.as_ref()?)))
    }

    pub(crate) fn order(&mut self, device: &DeviceId, order: MpsOrder, out: &mut Vec<WorkerEffect>) {
        if let Some(gpu) = self.gpus.get_mut(device) {
            gpu.order(&order);
            out.push(WorkerEffect::Mps(device.clone(), order));
        }
    }

    /// How many live ranks are on a device, by their access.
    pub(crate) fn rank_counts(&self, device: &DeviceId) -> RankCounts {
        let mut rank_counts = RankCounts::default();
        self.live_on(device).for_each(|(_, held)| rank_counts.add(held.access));
        rank_counts
    }

    pub(crate) fn live_on<'w>(
        &'w self,
        device: &'w DeviceId,
    ) -> impl Iterator<Item = (RankId, &'w RankEntry)> {
        let here = |held: &&RankEntry| held.is_live() && held.devices.contains(device);
        self.ranks.iter().map(|(rank, held)| (*rank, held)).filter(move |(_, held)| here(held))
    }

    pub(crate) fn clients(&self, device: &DeviceId) -> Vec<RankId> {
        let clients = self.live_on(device).filter(|(_, held)| matches!(held.access, GpuAccess::Mps(_)));
        clients.map(|(rank, _)| rank).collect()
    }
}

/// Takes a step of a rank's stop. Its executor is informed first: if this daemon dies before the signals, the
/// next one knows why the rank ended and which step is next.
pub(crate) fn advance_stop(
    rank: RankId,
    sequence: &mut StopSequence,
    step: impl FnOnce(&mut StopSequence) -> Vec<StopAction>,
    out: &mut Vec<WorkerEffect>,
) {
    let before = sequence.stopping();
    let actions = step(sequence);
    let changed = sequence.stopping().filter(|after| before != Some(*after));
    out.extend(changed.map(|stopping| WorkerEffect::Stopping(rank, stopping)));
    out.extend(actions.into_iter().map(|action| match action {
        StopAction::Signal(signal, target) => WorkerEffect::Signal(rank, signal, target),
        StopAction::Kill => WorkerEffect::Kill(rank),
    }));
}
