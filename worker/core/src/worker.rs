//! The worker: what it does about everything that can happen to it.
//!
//! Whatever is asked twice is done once, and whatever comes too late is ignored: reports may cross orders,
//! and the head repeats itself after each of its restarts.

use std::collections::BTreeMap;

use cohabit_types::{
    AttemptId, Device, DeviceId, DeviceKind, HeldRank, Order, Progress, ProgressOf, RankId, Report,
    StopReason, Time,
};

use crate::gpu::Gpu;
use crate::progress::Batch;
use crate::rank::{Held, Life};
use crate::starting::never_started;
use crate::stopping::{Sent, Sequence};
use crate::stretches::Stretches;
use crate::{Config, Effect, Ending, Event, FoundRank, GpuAccess, Lease, MpsOrder};

/// The worker's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    pub(crate) devices: Vec<Device>,
    /// Those of the devices that are real GPUs.
    pub(crate) gpus: BTreeMap<DeviceId, Gpu>,
    pub(crate) ranks: BTreeMap<RankId, Held>,
    pub(crate) stretches: Stretches,
    link: Link,
    progress: Batch,
}

/// Whether the head can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
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
            stretches: Stretches::default(),
            link: Link::Down,
            progress: Batch::new(config.heartbeat),
        }
    }

    /// The one door: takes note of what happened and says what to do, in order.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Order(Order::Run(order)) => self.run(now, *order, out),
            Event::Order(Order::Stop { attempt, why }) => self.stop(now, attempt, why, out),
            Event::Order(Order::Acknowledge(rank)) => self.acknowledge(rank, out),
            Event::Spawned(rank) => self.spawned(now, rank, out),
            Event::SpawnFailed(rank, failure) => self.spawn_failed(now, rank, failure, out),
            Event::Exited(rank, ending) => self.exited(rank, ending, out),
            Event::Progress(rank, progress) => self.progressed(rank, progress),
            Event::Found(found) => self.found(now, *found, out),
            Event::Linked => self.linked(out),
            Event::Unlinked => self.unlinked(now, out),
            Event::Mps(device, word) => self.mps(now, &device, word, out),
            Event::Sharing(rank, enforcement) => self.shares(now, rank, enforcement, out),
            Event::PrivateUser(rank, uid) => self.runs_as(rank, uid, out),
            Event::Sampled(samples) => self.sampled(now, samples, out),
            Event::Xid(device, code) => self.xid(now, &device, code, out),
            Event::Alarm => self.alarm(now, out),
        }
        self.settle_gpus(now, out);
    }

    /// When to send [`Event::Alarm`]; at once, if that time has passed.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let progress = match self.link {
            Link::Up => self.progress.deadline(),
            Link::Down => None,
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
            let company = self.company(&device.id);
            if let Some(gpu) = self.gpus.get_mut(&device.id) {
                device.condition = gpu.tell(company);
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

    fn stop(&mut self, now: Time, attempt: AttemptId, why: StopReason, out: &mut Vec<Effect>) {
        for rank in self.of(attempt).map(|(rank, _)| *rank).collect::<Vec<_>>() {
            self.stop_rank(now, rank, why, out);
        }
    }

    fn acknowledge(&mut self, rank: RankId, out: &mut Vec<Effect>) {
        if self.ranks.get(&rank).is_some_and(|held| !held.is_live()) {
            self.ranks.remove(&rank);
            out.push(Effect::Forget(rank));
        }
    }

    pub(crate) fn exited(&mut self, rank: RankId, ending: Ending, out: &mut Vec<Effect>) {
        if let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) {
            let unknown = held.end(ending);
            out.extend(unknown.map(|why| Effect::Explain(rank, why)));
            self.report_rank(rank, out);
        }
    }

    /// The lowest rank that reports at all speaks for its attempt.
    fn progressed(&mut self, rank: RankId, progress: Progress) {
        let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) else { return };
        self.stretches.progressed(rank, &progress);
        held.progress = Some(progress);
        if self.speaker(rank.attempt).is_some_and(|(speaker, _)| speaker == rank) {
            self.progress.changed(rank.attempt);
        }
    }

    /// The MPS daemon of a client lives on as well; it is taken over before anything else may happen to it.
    fn found(&mut self, now: Time, found: FoundRank, out: &mut Vec<Effect>) {
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
            (true, GpuAccess::TimeSliced(_)) => self.note_turns(now, rank, out),
            (true, GpuAccess::None | GpuAccess::Exclusive) | (false, _) => {}
        }
    }

    /// A new link, perhaps to a head that was restarted: everything is told again.
    fn linked(&mut self, out: &mut Vec<Effect>) {
        self.link = Link::Up;
        self.lease(Lease::Held, out);
        for (rank, held) in &self.ranks {
            out.extend(held.report(*rank).map(Effect::Report));
            out.extend(held.report_sharing(*rank).map(Effect::Report));
            out.extend(held.report_user(*rank).map(Effect::Report));
            if held.is_live() && held.progress.is_some() {
                self.progress.changed(rank.attempt);
            }
        }
    }

    /// Executors stop their ranks if this lasts. A rank that has none yet must not start meanwhile: the head
    /// may give it up, and start another attempt elsewhere.
    fn unlinked(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.link = Link::Down;
        self.lease(Lease::Orphaned, out);
        for rank in self.waiting() {
            self.stop_rank(now, rank, StopReason::Orphaned, out);
        }
    }

    fn alarm(&mut self, now: Time, out: &mut Vec<Effect>) {
        for (rank, held) in &mut self.ranks {
            if let Life::Running { sequence, .. } = &mut held.life {
                go_on(*rank, sequence, |it| it.advance(now), out);
            }
        }
        if self.is_linked() {
            self.report_progress(now, out);
        }
    }

    fn report_progress(&mut self, now: Time, out: &mut Vec<Effect>) {
        let changed = self.progress.take(now);
        let batch: Vec<ProgressOf> = changed
            .into_iter()
            .filter_map(|attempt| {
                let (_, progress) = self.speaker(attempt)?;
                Some(ProgressOf { attempt, progress: progress.clone() })
            })
            .collect();
        if !batch.is_empty() {
            out.push(Effect::Report(Report::Progress(batch)));
        }
    }

    /// Executors that are still being started hear of it with their start.
    fn lease(&self, lease: Lease, out: &mut Vec<Effect>) {
        let running = self.ranks.iter().filter(|(_, held)| matches!(held.life, Life::Running { .. }));
        out.extend(running.map(|(rank, _)| Effect::Lease(*rank, lease)));
    }

    /// What waits ends at once, what is being started is stopped as soon as it runs.
    pub(crate) fn stop_rank(&mut self, now: Time, rank: RankId, why: StopReason, out: &mut Vec<Effect>) {
        let Some(held) = self.ranks.get_mut(&rank) else { return };
        match &mut held.life {
            Life::Waiting(_) => self.exited(rank, never_started(now, why), out),
            Life::Starting { stop } => _ = stop.get_or_insert(why),
            Life::Running { sequence, .. } => go_on(rank, sequence, |it| it.begin(now, why), out),
            Life::Ended(_) => {}
        }
    }

    pub(crate) const fn is_linked(&self) -> bool {
        matches!(self.link, Link::Up)
    }

    /// Without a link nothing needs to be said: it is told when there is one.
    pub(crate) fn report_rank(&self, rank: RankId, out: &mut Vec<Effect>) {
        self.report(self.ranks.get(&rank).and_then(|held| held.report(rank)), out);
    }

    pub(crate) fn report(&self, report: Option<Report>, out: &mut Vec<Effect>) {
        out.extend(report.filter(|_| self.is_linked()).map(Effect::Report));
    }

    pub(crate) fn of(&self, attempt: AttemptId) -> impl Iterator<Item = (&RankId, &Held)> {
        self.ranks.range(attempt.rank(0)..=attempt.rank(u32::MAX))
    }

    fn speaker(&self, attempt: AttemptId) -> Option<(RankId, &Progress)> {
        self.of(attempt)
            .filter(|(_, held)| held.is_live())
            .find_map(|(rank, held)| Some((*rank, held.progress.as_ref()?)))
    }
}

/// Takes a step of a rank's stop. Its executor hears of it first: should this daemon die in between, the next
/// one knows why the rank ended, and what is still to come.
fn go_on(
    rank: RankId,
    sequence: &mut Sequence,
    step: impl FnOnce(&mut Sequence) -> Vec<Sent>,
    out: &mut Vec<Effect>,
) {
    let before = sequence.stopping();
    let sent = step(sequence);
    let changed = sequence.stopping().filter(|after| before != Some(*after));
    out.extend(changed.map(|stopping| Effect::Stopping(rank, stopping)));
    out.extend(sent.into_iter().map(|(signal, target)| Effect::Signal(rank, signal, target)));
}
