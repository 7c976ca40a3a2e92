//! Whatever happens in whatever order: the invariants hold, nothing runs twice, what ended is let go, and the
//! actors of MPS daemons get one order at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::{
    AttemptId, Bytes, CheckpointResult, CheckpointSource, DeviceId, DeviceSharing, Enforcement,
    EnforcementRequirement, GpuReading, GpuRequest, HeldRankPhase, HostShare, JobId, Order, Outcome,
    Predecessor, RankId, RunOrder, Share, Span, StartFailure, StopReason, Time,
};
use proptest::prelude::*;

use super::gpu_kit::{device, gpu, left_running};
use super::kit::{at, code, limited, order, secs, step};
use crate::{
    Config, FetchedCheckpoints, GpuAccess, GpuSample, MpsEvent, MpsLimits, MpsOrder, RankExit, Worker,
    WorkerEffect, WorkerEvent,
};

/// Reasons for stops that the head orders: with the whole grace and with none.
const STOP_REASONS: [StopReason; 3] = [StopReason::Cancelled, StopReason::Preempted, StopReason::Killed];

/// What an attempt is to have.
const HOST: HostShare = HostShare { cpus: 6, memory: Bytes(1 << 30) };

/// The one job of which everything happens; attempts and ranks are drawn.
fn rank_id() -> impl Strategy<Value = RankId> {
    (1..=4u32, 0..2u32).prop_map(|(attempt, rank)| JobId::new(7).attempt(attempt).rank(rank))
}

fn carried() -> FetchedCheckpoints {
    FetchedCheckpoints { result: Some(CheckpointResult::Carried(Bytes(1))), note: Some("a note".into()) }
}

fn allot(attempt: AttemptId) -> WorkerEvent {
    WorkerEvent::Order(Order::Allot { attempt, host: HOST })
}

/// Of two ranks on whole devices, or one on a part of one.
fn run_order() -> impl Strategy<Value = RunOrder> {
    let flag = || prop::bool::ANY;
    let after = prop::option::weighted(0.3, 1..=4u32);
    let terms = (prop::option::of(1..90u64), flag(), flag(), flag(), flag(), flag(), after);
    (1..=4u32, 1..=3u32, terms).prop_map(|(attempt, ranks, terms)| {
        let (warning, shares, insists, has_code, carries, interactive, after) = terms;
        let mut order = order(limited(60, warning), if shares { 1 } else { ranks });
        order.attempt = JobId::new(7).attempt(attempt);
        if shares {
            Arc::make_mut(&mut order.spec).demand.gpus = GpuRequest::Part(Share(250));
            order.ranks[0].share = Share(250);
            order.ranks[0].devices = vec![gpu(ranks % 2)];
        }
        Arc::make_mut(&mut order.spec).code = has_code.then(code);
        order.checkpoints = carries.then(|| CheckpointSource { attempt: 1, node: "den".into() });
        order.after =
            after.map(|attempt| Predecessor { attempt: JobId::new(7).attempt(attempt), within: secs(9) });
        order.idle_after = interactive.then(|| secs(8));
        if insists {
            Arc::make_mut(&mut order.spec).demand.limits = EnforcementRequirement::Enforced;
        }
        order
    })
}

fn device_id() -> impl Strategy<Value = DeviceId> {
    (0..2u32).prop_map(gpu)
}

fn word() -> impl Strategy<Value = MpsEvent> {
    prop_oneof![
        4 => Just(MpsEvent::Up),
        1 => Just(MpsEvent::Failed("it does not start".into())),
        3 => Just(MpsEvent::Stopped),
        2 => prop::option::of(rank_id())
            .prop_map(|culprit| MpsEvent::Faulted { culprit, detail: "a fault".into() }),
    ]
}

fn sample() -> impl Strategy<Value = GpuSample> {
    (device_id(), 0..20u32, rank_id(), 0..200u64).prop_map(|(device, health, rank, gib)| GpuSample {
        device,
        reading: if health == 0 { Err("no answer".into()) } else { Ok(GpuReading::default()) },
        ranks: vec![(rank, Bytes(gib << 30))],
        foreign_memory: Bytes(gib << 20),
    })
}

fn enforcement() -> impl Strategy<Value = Enforcement> {
    prop_oneof![Just(Enforcement::Enforced), Just(Enforcement::Unenforced("no client".into()))]
}

fn event() -> impl Strategy<Value = WorkerEvent> {
    let exited =
        |rank| WorkerEvent::Exited(rank, RankExit { outcome: Outcome::Exited(0), stopped: None, at: at(0) });
    prop_oneof![
        6 => run_order().prop_map(|order| WorkerEvent::Order(Order::Run(Box::new(order)))),
        2 => (rank_id(), prop::sample::select(&STOP_REASONS[..]))
            .prop_map(|(rank, why)| WorkerEvent::Order(Order::Stop { attempt: rank.attempt, why })),
        1 => rank_id().prop_map(|rank| WorkerEvent::Order(Order::Withdraw(rank.attempt))),
        3 => rank_id().prop_map(|rank| WorkerEvent::Order(Order::Acknowledge(rank))),
        2 => rank_id().prop_map(|rank| allot(rank.attempt)),
        3 => rank_id().prop_map(|rank| WorkerEvent::Allotted(rank.attempt, Some(HOST))),
        4 => (rank_id(), prop::bool::ANY).prop_map(|(rank, is_there)| {
            let result = if is_there { Ok(()) } else { Err(StartFailure::Other("no".into())) };
            WorkerEvent::CodeFetched(rank.attempt, result)
        }),
        4 => rank_id().prop_map(|rank| WorkerEvent::CheckpointsFetched(rank.attempt, carried())),
        4 => rank_id().prop_map(WorkerEvent::Spawned),
        1 => rank_id().prop_map(|rank| WorkerEvent::SpawnFailed(rank, StartFailure::Other("no".into()))),
        4 => rank_id().prop_map(exited),
        3 => (rank_id(), 0..9u64).prop_map(|(rank, steps)| WorkerEvent::Progress(rank, step(steps))),
        1 => Just(WorkerEvent::Linked),
        1 => Just(WorkerEvent::Unlinked),
        8 => (device_id(), word()).prop_map(|(device, word)| WorkerEvent::Mps(device, word)),
        2 => (rank_id(), enforcement()).prop_map(|(rank, state)| WorkerEvent::Sharing(rank, state)),
        1 => rank_id().prop_map(|rank| WorkerEvent::PrivateUser(rank, 61_184)),
        2 => sample().prop_map(|sample| WorkerEvent::Sampled(vec![sample])),
        1 => (rank_id(), 0..9u64).prop_map(|(rank, secs)| {
            WorkerEvent::ProcessorTime(vec![(rank, Span::from_secs(secs))])
        }),
        1 => (device_id(), prop::sample::select(vec![31, 31, 31, 63, 74, 79]))
            .prop_map(|(device, code)| WorkerEvent::Xid(device, code)),
        4 => Just(WorkerEvent::Alarm),
    ]
}

/// The worker, and the executors and MPS actors as the effects alone would have them.
struct World {
    worker: Worker,
    now: Time,
    executors: BTreeMap<RankId, bool>,
    /// Orders to MPS actors that are not answered yet.
    ordered: BTreeMap<DeviceId, MpsOrder>,
    /// Attempts whose limits are being changed.
    changing: BTreeSet<AttemptId>,
    /// Copies of code, and whether they are there.
    copies: BTreeMap<AttemptId, bool>,
    /// Attempts for which checkpoints are on their way.
    carrying: BTreeSet<AttemptId>,
}

impl World {
    /// Two GPUs, of which an earlier daemon left one to this client, if to any.
    fn new(left: Option<u32>) -> World {
        let devices = vec![device(0, DeviceSharing::Enforced), device(1, DeviceSharing::Enforced)];
        let worker = Worker::new(Config { heartbeat: secs(5), devices });
        let mut world = World {
            worker,
            now: at(0),
            executors: BTreeMap::new(),
            ordered: BTreeMap::new(),
            changing: BTreeSet::new(),
            copies: BTreeMap::new(),
            carrying: BTreeSet::new(),
        };
        if let Some(attempt) = left {
            let mut order = order(limited(60, None), 1);
            order.attempt = JobId::new(7).attempt(attempt);
            world.executors.insert(order.attempt.rank(0), true);
            let limits = MpsLimits { memory: Bytes(1 << 30), percentage: None };
            world.handle(left_running(&order, GpuAccess::Mps(limits)));
        }
        world
    }

    /// Executors report only what they can: a start once, an end once. MPS actors answer what they were
    /// asked.
    fn is_possible(&self, event: &WorkerEvent) -> bool {
        match event {
            WorkerEvent::Spawned(rank) | WorkerEvent::SpawnFailed(rank, _) => {
                self.executors.get(rank) == Some(&false)
            }
            WorkerEvent::Exited(rank, _) | WorkerEvent::Progress(rank, _) => {
                self.executors.get(rank) == Some(&true)
            }
            WorkerEvent::CodeFetched(attempt, _) => self.copies.get(attempt) == Some(&false),
            WorkerEvent::CheckpointsFetched(attempt, _) => self.carrying.contains(attempt),
            WorkerEvent::Allotted(attempt, _) => self.changing.contains(attempt),
            WorkerEvent::Mps(device, word) => match (word, self.ordered.get(device)) {
                (MpsEvent::Up | MpsEvent::Failed(_), asked) => {
                    asked.is_some_and(|order| *order != MpsOrder::Stop)
                }
                (MpsEvent::Stopped, asked) => asked == Some(&MpsOrder::Stop),
                (MpsEvent::Faulted { .. }, _) => true,
            },
            WorkerEvent::Order(_)
            | WorkerEvent::Found(_)
            | WorkerEvent::Linked
            | WorkerEvent::Unlinked
            | WorkerEvent::Alarm => true,
            WorkerEvent::Sharing(..)
            | WorkerEvent::PrivateUser(..)
            | WorkerEvent::Sampled(_)
            | WorkerEvent::ProcessorTime(_)
            | WorkerEvent::Xid(..) => true,
        }
    }

    fn handle(&mut self, event: WorkerEvent) {
        match &event {
            WorkerEvent::CodeFetched(attempt, result) => match result {
                Ok(()) => _ = self.copies.insert(*attempt, true),
                Err(_) => _ = self.copies.remove(attempt),
            },
            WorkerEvent::CheckpointsFetched(attempt, _) => _ = self.carrying.remove(attempt),
            WorkerEvent::Allotted(attempt, _) => _ = self.changing.remove(attempt),
            WorkerEvent::Spawned(rank) => _ = self.executors.insert(*rank, true),
            WorkerEvent::SpawnFailed(rank, _) | WorkerEvent::Exited(rank, _) => {
                _ = self.executors.remove(rank)
            }
            WorkerEvent::Mps(device, MpsEvent::Up | MpsEvent::Failed(_) | MpsEvent::Stopped) => {
                _ = self.ordered.remove(device);
            }
            WorkerEvent::Order(_) | WorkerEvent::Progress(..) | WorkerEvent::Found(_) => {}
            WorkerEvent::Linked | WorkerEvent::Unlinked | WorkerEvent::Alarm => {}
            WorkerEvent::Mps(..) | WorkerEvent::Sharing(..) | WorkerEvent::PrivateUser(..) => {}
            WorkerEvent::Sampled(_) | WorkerEvent::ProcessorTime(_) | WorkerEvent::Xid(..) => {}
        }
        let mut effects = Vec::new();
        self.worker.handle(self.now, event, &mut effects);
        self.worker.check();
        effects.into_iter().for_each(|effect| self.apply(effect));
    }

    fn apply(&mut self, effect: WorkerEffect) {
        match effect {
            WorkerEffect::FetchCode(start) => {
                assert_eq!(self.copies.insert(start.code_owner(), false), None, "it is fetched already");
            }
            // One that is being made is released when it is there.
            WorkerEffect::ReleaseCode(attempt) => {
                if self.copies.get(&attempt) == Some(&true) {
                    self.copies.remove(&attempt);
                }
            }
            WorkerEffect::FetchCheckpoints(start) => {
                assert!(self.carrying.insert(start.rank.attempt), "{} is carried already", start.rank);
            }
            WorkerEffect::AbandonCheckpoints(attempt) => {
                assert!(self.carrying.remove(&attempt), "{attempt} is not being carried");
            }
            WorkerEffect::Spawn(start) => {
                assert!(!self.carrying.contains(&start.rank.attempt), "{} starts too early", start.rank);
                let (has_code, attempt) = (start.spec.code.is_some(), start.code_owner());
                let is_there = self.copies.get(&attempt) == Some(&true);
                assert!(is_there || !has_code, "{} starts without its code", start.rank);
                assert_eq!(self.executors.insert(start.rank, false), None, "{} runs already", start.rank);
            }
            WorkerEffect::Stopping(rank, _)
            | WorkerEffect::Signal(rank, ..)
            | WorkerEffect::Lease(rank, _) => {
                assert_eq!(self.executors.get(&rank), Some(&true), "{rank} does not run");
            }
            WorkerEffect::Kill(rank) => {
                assert!(self.executors.contains_key(&rank), "{rank} has ended, or was never started");
            }
            WorkerEffect::Explain(rank, _) | WorkerEffect::Forget(rank) => {
                assert_eq!(self.executors.get(&rank), None, "{rank} has not ended")
            }
            WorkerEffect::Mps(device, order) => {
                assert_eq!(self.ordered.insert(device, order), None, "an earlier order is not answered");
            }
            WorkerEffect::Allot(attempt, _) => {
                assert!(self.changing.insert(attempt), "the limits of {attempt} are being changed");
            }
            WorkerEffect::Report(_) => {}
        }
    }

    /// Every order is answered, everything that was started starts, ends and is acknowledged, and what waited
    /// for that follows.
    fn settle(&mut self) {
        while !self.worker.held().is_empty() || !self.copies.is_empty() {
            self.now += Span::from_secs(60);
            for attempt in self.copies.clone().into_iter().filter_map(|(it, there)| (!there).then_some(it)) {
                self.handle(WorkerEvent::CodeFetched(attempt, Ok(())));
            }
            for attempt in self.carrying.clone() {
                self.handle(WorkerEvent::CheckpointsFetched(attempt, carried()));
            }
            for (device, order) in self.ordered.clone() {
                let word = if order == MpsOrder::Stop { MpsEvent::Stopped } else { MpsEvent::Up };
                self.handle(WorkerEvent::Mps(device, word));
            }
            for (rank, runs) in self.executors.clone() {
                if !runs {
                    self.handle(WorkerEvent::Spawned(rank));
                }
                let ending = RankExit { outcome: Outcome::Exited(0), stopped: None, at: self.now };
                self.handle(WorkerEvent::Exited(rank, ending));
            }
            let ended = self.worker.held().into_iter().filter(|held| held.phase == HeldRankPhase::Ended);
            for held in ended.collect::<Vec<_>>() {
                self.handle(WorkerEvent::Order(Order::Acknowledge(held.rank)));
            }
            assert!(self.now < at(3_600), "these wait for ever: {:?}", self.worker.held());
        }
    }
}

type EventSequence = Vec<(u64, WorkerEvent)>;

fn event_sequence() -> impl Strategy<Value = (Option<u32>, EventSequence)> {
    (prop::option::of(1..=4u32), prop::collection::vec((0..20u64, event()), 0..120))
}

proptest! {
    #[test]
    fn every_rank_is_let_go_once_it_ended_and_was_acknowledged((left, events) in event_sequence()) {
        let mut world = World::new(left);
        for (pause, event) in events {
            world.now += Span::from_secs(pause);
            if world.is_possible(&event) {
                world.handle(event);
            }
        }
        world.settle();
        prop_assert_eq!(world.worker.held(), []);
    }

    #[test]
    fn alarms_always_move_the_deadline((left, events) in event_sequence()) {
        let mut world = World::new(left);
        for (pause, event) in events {
            world.now += Span::from_secs(pause);
            if world.is_possible(&event) {
                world.handle(event);
            }
            for _ in 0..8 {
                world.handle(WorkerEvent::Alarm);
            }
            prop_assert!(world.worker.deadline().is_none_or(|due_at| due_at > world.now));
        }
    }
}
