//! The worker: what it does about everything that can happen to it.
//!
//! Whatever is asked twice is done once, and whatever comes too late is ignored: reports may cross orders,
//! and the head repeats itself after each of its restarts.

use std::collections::BTreeMap;

use cohabit_proto::{
    AttemptId, DeviceId, HeldRank, Order, Outcome, Progress, ProgressOf, RankId, RankRun, Report, RunOrder,
    StartFailure, StopReason, Time,
};

use crate::environment::{environment, rendezvous_port};
use crate::progress::Batch;
use crate::rank::{Held, Life};
use crate::stopping::Sent;
use crate::{Config, Effect, Ending, Event, FoundRank, GpuAccess, Lease, RankStart};

/// The worker's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    devices: Vec<DeviceId>,
    ranks: BTreeMap<RankId, Held>,
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
        Worker {
            devices: config.devices.into_iter().map(|device| device.id).collect(),
            ranks: BTreeMap::new(),
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
            Event::Found(found) => self.found(*found),
            Event::Linked => self.linked(out),
            Event::Unlinked => self.unlinked(out),
            Event::Mps(..) | Event::Sharing(..) | Event::Sampled(_) | Event::Xid(..) => {}
            Event::Alarm => self.alarm(now, out),
        }
    }

    /// When to send [`Event::Alarm`]; at once, if that time has passed.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let progress = match self.link {
            Link::Up => self.progress.deadline(),
            Link::Down => None,
        };
        self.ranks.values().filter_map(Held::deadline).chain(progress).min()
    }

    /// Every rank that is here: the inventory's part of the next greeting.
    #[must_use]
    pub fn held(&self) -> Vec<HeldRank> {
        self.ranks.iter().map(|(rank, held)| HeldRank { rank: *rank, phase: held.phase() }).collect()
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
    }

    /// An attempt is started once. If it has ended meanwhile, the head has not heard of that.
    fn run(&mut self, now: Time, order: RunOrder, out: &mut Vec<Effect>) {
        if self.of(order.attempt).next().is_some() {
            let ended = self.of(order.attempt).filter(|(_, held)| !held.is_live());
            return ended.for_each(|(rank, _)| self.report(*rank, out));
        }
        let missing = order.ranks.iter().flat_map(|run| &run.devices).find(|id| !self.devices.contains(id));
        let refusal = missing.map(|device| StartFailure::DeviceMissing(device.0.clone()));
        for run in &order.ranks {
            let start = rank_start(now, &order, run);
            let rank = start.rank;
            self.ranks.insert(rank, Held::starting(&start));
            match &refusal {
                None => out.push(Effect::Spawn(Box::new(start))),
                Some(failure) => self.spawn_failed(now, rank, failure.clone(), out),
            }
        }
    }

    fn stop(&mut self, now: Time, attempt: AttemptId, why: StopReason, out: &mut Vec<Effect>) {
        for (rank, held) in self.ranks.iter_mut().filter(|(rank, _)| rank.attempt == attempt) {
            match &mut held.life {
                Life::Starting { stop } => _ = stop.get_or_insert(why),
                Life::Running { sequence, .. } => signal(*rank, sequence.begin(now, why), out),
                Life::Ended(_) => {}
            }
        }
    }

    fn acknowledge(&mut self, rank: RankId, out: &mut Vec<Effect>) {
        if self.ranks.get(&rank).is_some_and(|held| !held.is_live()) {
            self.ranks.remove(&rank);
            out.push(Effect::Forget(rank));
        }
    }

    fn spawned(&mut self, now: Time, rank: RankId, out: &mut Vec<Effect>) {
        let Some(held) = self.ranks.get_mut(&rank) else { return };
        let Life::Starting { stop } = held.life else { return };
        held.start(now);
        self.report(rank, out);
        if self.link == Link::Down {
            out.push(Effect::Lease(rank, Lease::Orphaned));
        }
        if let Some(why) = stop {
            self.stop_rank(now, rank, why, out);
        }
    }

    fn spawn_failed(&mut self, now: Time, rank: RankId, failure: StartFailure, out: &mut Vec<Effect>) {
        if self.ranks.get(&rank).is_some_and(|held| matches!(held.life, Life::Starting { .. })) {
            let ending = Ending { outcome: Outcome::NotStarted(failure), stopped: None, at: now };
            self.exited(rank, ending, out);
        }
    }

    fn exited(&mut self, rank: RankId, ending: Ending, out: &mut Vec<Effect>) {
        if let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) {
            held.end(ending);
            self.report(rank, out);
        }
    }

    /// The lowest rank that reports at all speaks for its attempt.
    fn progressed(&mut self, rank: RankId, progress: Progress) {
        let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) else { return };
        held.progress = Some(progress);
        if self.speaker(rank.attempt).is_some_and(|(speaker, _)| speaker == rank) {
            self.progress.changed(rank.attempt);
        }
    }

    fn found(&mut self, found: FoundRank) {
        self.ranks.entry(found.start.rank).or_insert_with(|| Held::found(found));
    }

    /// A new link, perhaps to a head that was restarted: everything is told again.
    fn linked(&mut self, out: &mut Vec<Effect>) {
        self.link = Link::Up;
        self.lease(Lease::Held, out);
        for (rank, held) in &self.ranks {
            out.extend(held.report(*rank).map(Effect::Report));
            if held.is_live() && held.progress.is_some() {
                self.progress.changed(rank.attempt);
            }
        }
    }

    fn unlinked(&mut self, out: &mut Vec<Effect>) {
        self.link = Link::Down;
        self.lease(Lease::Orphaned, out);
    }

    fn alarm(&mut self, now: Time, out: &mut Vec<Effect>) {
        for (rank, held) in &mut self.ranks {
            if let Life::Running { sequence, .. } = &mut held.life {
                signal(*rank, sequence.advance(now), out);
            }
        }
        if self.link == Link::Up {
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

    fn stop_rank(&mut self, now: Time, rank: RankId, why: StopReason, out: &mut Vec<Effect>) {
        if let Some(Held { life: Life::Running { sequence, .. }, .. }) = self.ranks.get_mut(&rank) {
            signal(rank, sequence.begin(now, why), out);
        }
    }

    /// Without a link nothing needs to be said: it is told when there is one.
    fn report(&self, rank: RankId, out: &mut Vec<Effect>) {
        let report = self.ranks.get(&rank).and_then(|held| held.report(rank));
        out.extend(report.filter(|_| self.link == Link::Up).map(Effect::Report));
    }

    fn of(&self, attempt: AttemptId) -> impl Iterator<Item = (&RankId, &Held)> {
        self.ranks.range(attempt.rank(0)..=attempt.rank(u32::MAX))
    }

    fn speaker(&self, attempt: AttemptId) -> Option<(RankId, &Progress)> {
        self.of(attempt)
            .filter(|(_, held)| held.is_live())
            .find_map(|(rank, held)| Some((*rank, held.progress.as_ref()?)))
    }
}

fn signal(rank: RankId, sent: Vec<Sent>, out: &mut Vec<Effect>) {
    out.extend(sent.into_iter().map(|(signal, target)| Effect::Signal(rank, signal, target)));
}

fn rank_start(now: Time, order: &RunOrder, run: &RankRun) -> RankStart {
    RankStart {
        rank: order.attempt.rank(run.rank),
        spec: order.spec.clone(),
        user: order.user.clone(),
        devices: run.devices.clone(),
        share: run.share,
        access: GpuAccess::None,
        rendezvous_port: rendezvous_port(order, run),
        environment: environment(now, order, run),
    }
}
