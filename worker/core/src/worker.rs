//! The worker: what it does about everything that can happen to it.
//!
//! Whatever is asked twice is done once, and whatever comes too late is ignored: reports may cross orders,
//! and the head repeats itself after each of its restarts.

use std::collections::BTreeMap;

use cohabit_types::{
    AttemptId, AttemptProgress, Device, DeviceId, DeviceKind, HeldRank, Order, Progress, RankId, Report,
    StopReason, Time,
};

use crate::gpu::Gpu;
use crate::progress::PendingProgress;
use crate::rank::{Held, RankState};
use crate::starting::never_started;
use crate::stopping::{SignalToSend, StopSequence};
use crate::stretches::ColocationSampler;
use crate::{Config, FoundRank, GpuAccess, Lease, MpsOrder, RankExit, WorkerEffect, WorkerEvent};

/// The worker's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    pub(crate) devices: Vec<Device>,
    /// Those of the devices that are real GPUs.
    pub(crate) gpus: BTreeMap<DeviceId, Gpu>,
    pub(crate) ranks: BTreeMap<RankId, Held>,
    pub(crate) stretches: ColocationSampler,
    link: LinkState,
    progress: PendingProgress,
}

/// Whether the head can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Up,
    Down,
}

impl Worker {
    /// A worker that holds nothing and is not linked.
    #[must_use]
    pub fn new(config: Config) -> Worker {
        let gpus = config.devices.iter().filter(|device| device.kind == DeviceKind::Gpu);
        Worker {
            gpus: gpus.map(|device| (device.id.clone(), Gpu::new(device))).collect(),
            devices: config.devices,
            ranks: BTreeMap::new(),
            stretches: ColocationSampler::default(),
            link: LinkState::Down,
            progress: PendingProgress::new(config.heartbeat),
        }
    }

    /// The one door: takes note of what happened and says what to do, in order.
    pub fn handle(&mut self, now: Time, event: WorkerEvent, out: &mut Vec<WorkerEffect>) {
        match event {
            WorkerEvent::Order(Order::Run(order)) => self.run(now, *order, out),
            WorkerEvent::Order(Order::Stop { attempt, why }) => self.stop(now, attempt, why, out),
            WorkerEvent::Order(Order::Acknowledge(rank)) => self.acknowledge(rank, out),
            WorkerEvent::Spawned(rank) => self.spawned(now, rank, out),
            WorkerEvent::SpawnFailed(rank, failure) => self.spawn_failed(now, rank, failure, out),
            WorkerEvent::Exited(rank, ending) => self.exited(rank, ending, out),
            WorkerEvent::Progress(rank, progress) => self.progressed(rank, progress),
            WorkerEvent::Found(found) => self.found(now, *found, out),
            WorkerEvent::Linked => self.linked(out),
            WorkerEvent::Unlinked => self.unlinked(now, out),
            WorkerEvent::Mps(device, word) => self.handle_mps(now, &device, word, out),
            WorkerEvent::Sharing(rank, enforcement) => self.record_enforcement(now, rank, enforcement, out),
            WorkerEvent::PrivateUser(rank, uid) => self.record_private_user(rank, uid, out),
            WorkerEvent::Sampled(samples) => self.handle_samples(now, samples, out),
            WorkerEvent::Xid(device, code) => self.xid(now, &device, code, out),
            WorkerEvent::Alarm => self.alarm(now, out),
        }
        self.update_gpus(now, out);
    }

    /// When to send [`WorkerEvent::Alarm`]; at once, if that time has passed.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let progress = match self.link {
            LinkState::Up => self.progress.deadline(),
            LinkState::Down => None,
        };
        let services = self.gpus.values().filter_map(|gpu| gpu.service().deadline());
        self.ranks.values().filter_map(Held::deadline).chain(progress).chain(services).min()
    }

    /// Every rank that is here: the inventory's part of the next greeting.
    #[must_use]
    pub fn held(&self) -> Vec<HeldRank> {
        self.ranks.iter().map(|(rank, held)| HeldRank { rank: *rank, phase: held.phase() }).collect()
    }

    /// Every device as it is now: another part of the next greeting. What changes from here on is told over
    /// the link that this greeting opens.
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

    /// Panics where what must always be true is not.
    ///
    /// # Panics
    /// If the worker is at fault.
    pub fn check(&self) {
        for (rank, held) in &self.ranks {
            assert!(held.is_live() || held.deadline().is_none(), "{rank} ended and still has a deadline");
            assert!(held.is_live() || held.report(*rank).is_some(), "{rank} ended and nothing tells of it");
        }
        self.check_gpus();
    }

    fn stop(&mut self, now: Time, attempt: AttemptId, why: StopReason, out: &mut Vec<WorkerEffect>) {
        for rank in self.of(attempt).map(|(rank, _)| *rank).collect::<Vec<_>>() {
            self.stop_rank(now, rank, why, out);
        }
    }

    fn acknowledge(&mut self, rank: RankId, out: &mut Vec<WorkerEffect>) {
        if self.ranks.get(&rank).is_some_and(|held| !held.is_live()) {
            self.ranks.remove(&rank);
            out.push(WorkerEffect::Forget(rank));
        }
    }

    pub(crate) fn exited(&mut self, rank: RankId, ending: RankExit, out: &mut Vec<WorkerEffect>) {
        if let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) {
            let unknown = held.end(ending);
            out.extend(unknown.map(|why| WorkerEffect::Explain(rank, why)));
            self.report_rank(rank, out);
        }
    }

    /// The lowest rank that reports at all speaks for its attempt.
    fn progressed(&mut self, rank: RankId, progress: Progress) {
        let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) else { return };
        self.stretches.progressed(rank, &progress);
        held.progress = Some(progress);
        if self.reporting_rank(rank.attempt).is_some_and(|(reporting_rank, _)| reporting_rank == rank) {
            self.progress.changed(rank.attempt);
        }
    }

    /// The MPS daemon of a client lives on as well; it is taken over before anything else may happen to it.
    fn found(&mut self, now: Time, found: FoundRank, out: &mut Vec<WorkerEffect>) {
        let rank = found.start.rank;
        let held = self.ranks.entry(rank).or_insert_with(|| Held::found(found));
        match (held.is_live(), held.access) {
            (true, GpuAccess::Mps(_)) => {
                for device in held.devices.clone() {
                    if self.gpus.get(&device).is_some_and(Gpu::has_no_daemon) {
                        self.order(&device, MpsOrder::Adopt, out);
                    }
                }
            }
            (true, GpuAccess::TimeSliced(_)) => self.report_time_slicing(now, rank, out),
            (true, GpuAccess::None | GpuAccess::Exclusive) | (false, _) => {}
        }
    }

    /// A new link, perhaps to a head that was restarted: everything is told again.
    fn linked(&mut self, out: &mut Vec<WorkerEffect>) {
        self.link = LinkState::Up;
        self.lease(Lease::Held, out);
        for (rank, held) in &self.ranks {
            out.extend(held.report(*rank).map(WorkerEffect::Report));
            out.extend(held.report_sharing(*rank).map(WorkerEffect::Report));
            out.extend(held.report_user(*rank).map(WorkerEffect::Report));
            if held.is_live() && held.progress.is_some() {
                self.progress.changed(rank.attempt);
            }
        }
    }

    /// Executors stop their ranks if this lasts. A rank that has none yet must not start meanwhile: the head
    /// may give it up, and start another attempt elsewhere.
    fn unlinked(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        self.link = LinkState::Down;
        self.lease(Lease::Orphaned, out);
        for rank in self.waiting() {
            self.stop_rank(now, rank, StopReason::Orphaned, out);
        }
    }

    fn alarm(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        for (rank, held) in &mut self.ranks {
            if let RankState::Running { sequence, .. } = &mut held.life {
                advance_stop(*rank, sequence, |it| it.advance(now), out);
            }
        }
        if self.is_linked() {
            self.report_progress(now, out);
        }
    }

    fn report_progress(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        let changed = self.progress.take(now);
        let batch: Vec<AttemptProgress> = changed
            .into_iter()
            .filter_map(|attempt| {
                let (_, progress) = self.reporting_rank(attempt)?;
                Some(AttemptProgress { attempt, progress: progress.clone() })
            })
            .collect();
        if !batch.is_empty() {
            out.push(WorkerEffect::Report(Report::Progress(batch)));
        }
    }

    /// Executors that are still being started hear of it with their start.
    fn lease(&self, lease: Lease, out: &mut Vec<WorkerEffect>) {
        let running = self.ranks.iter().filter(|(_, held)| matches!(held.life, RankState::Running { .. }));
        out.extend(running.map(|(rank, _)| WorkerEffect::Lease(*rank, lease)));
    }

    /// What waits ends at once, what is being started is stopped as soon as it runs.
    pub(crate) fn stop_rank(
        &mut self,
        now: Time,
        rank: RankId,
        why: StopReason,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(held) = self.ranks.get_mut(&rank) else { return };
        match &mut held.life {
            RankState::Waiting(_) => self.exited(rank, never_started(now, why), out),
            RankState::Starting { stop } => _ = stop.get_or_insert(why),
            RankState::Running { sequence, .. } => advance_stop(rank, sequence, |it| it.begin(now, why), out),
            RankState::Ended(_) => {}
        }
    }

    pub(crate) const fn is_linked(&self) -> bool {
        matches!(self.link, LinkState::Up)
    }

    /// Without a link nothing needs to be said: it is told when there is one.
    pub(crate) fn report_rank(&self, rank: RankId, out: &mut Vec<WorkerEffect>) {
        self.report(self.ranks.get(&rank).and_then(|held| held.report(rank)), out);
    }

    pub(crate) fn report(&self, report: Option<Report>, out: &mut Vec<WorkerEffect>) {
        out.extend(report.filter(|_| self.is_linked()).map(WorkerEffect::Report));
    }

    pub(crate) fn of(&self, attempt: AttemptId) -> impl Iterator<Item = (&RankId, &Held)> {
        self.ranks.range(attempt.rank(0)..=attempt.rank(u32::MAX))
    }

    fn reporting_rank(&self, attempt: AttemptId) -> Option<(RankId, &Progress)> {
        self.of(attempt)
            .filter(|(_, held)| held.is_live())
            .find_map(|(rank, held)| Some((*rank, held.progress.as_ref()?)))
    }
}

/// Takes a step of a rank's stop. Its executor hears of it first: should this daemon die in between, the next
/// one knows why the rank ended, and what is still to come.
fn advance_stop(
    rank: RankId,
    sequence: &mut StopSequence,
    step: impl FnOnce(&mut StopSequence) -> Vec<SignalToSend>,
    out: &mut Vec<WorkerEffect>,
) {
    let before = sequence.stopping();
    let sent = step(sequence);
    let changed = sequence.stopping().filter(|after| before != Some(*after));
    out.extend(changed.map(|stopping| WorkerEffect::Stopping(rank, stopping)));
    out.extend(sent.into_iter().map(|(signal, target)| WorkerEffect::Signal(rank, signal, target)));
}
