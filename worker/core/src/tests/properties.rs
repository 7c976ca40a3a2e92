//! Whatever happens in whatever order: the invariants hold, nothing runs twice, and what ended is let go.

use std::collections::BTreeMap;

use cohabit_proto::{
    DeviceId, JobId, Order, Outcome, Phase, RankId, RunOrder, Span, StartFailure, StopReason, Time,
};
use proptest::prelude::*;

use super::kit::{at, limited, order, secs, step};
use crate::{Config, Effect, Ending, Event, Worker};

/// The one job of which everything happens; attempts and ranks are drawn.
fn rank_id() -> impl Strategy<Value = RankId> {
    (1..=2u32, 0..2u32).prop_map(|(attempt, rank)| JobId::new(7).attempt(attempt).rank(rank))
}

fn run_order() -> impl Strategy<Value = RunOrder> {
    (1..=2u32, 1..=3u32, prop::option::of(1..90u64)).prop_map(|(attempt, ranks, warning)| RunOrder {
        attempt: JobId::new(7).attempt(attempt),
        ..order(limited(60, warning), ranks)
    })
}

fn event() -> impl Strategy<Value = Event> {
    let exited = |rank| Event::Exited(rank, Ending { outcome: Outcome::Exited(0), stopped: None, at: at(0) });
    prop_oneof![
        4 => run_order().prop_map(|order| Event::Order(Order::Run(Box::new(order)))),
        2 => (rank_id(), prop::sample::select(vec![StopReason::Cancelled, StopReason::Preempted]))
            .prop_map(|(rank, why)| Event::Order(Order::Stop { attempt: rank.attempt, why })),
        2 => rank_id().prop_map(|rank| Event::Order(Order::Acknowledge(rank))),
        4 => rank_id().prop_map(Event::Spawned),
        1 => rank_id().prop_map(|rank| Event::SpawnFailed(rank, StartFailure::Other("no".into()))),
        2 => rank_id().prop_map(exited),
        3 => (rank_id(), 0..9u64).prop_map(|(rank, steps)| Event::Progress(rank, step(steps))),
        1 => Just(Event::Linked),
        1 => Just(Event::Unlinked),
        4 => Just(Event::Alarm),
    ]
}

/// The worker, and the executors as the effects alone would have them.
struct World {
    worker: Worker,
    now: Time,
    executors: BTreeMap<RankId, bool>,
}

impl World {
    fn new() -> World {
        let devices = vec![DeviceId("gpu-0".into()), DeviceId("gpu-1".into())];
        let worker = Worker::new(Config { heartbeat: secs(5), devices });
        World { worker, now: at(0), executors: BTreeMap::new() }
    }

    /// Executors report only what they can: a start once, an end once.
    fn is_possible(&self, event: &Event) -> bool {
        match event {
            Event::Spawned(rank) | Event::SpawnFailed(rank, _) => self.executors.get(rank) == Some(&false),
            Event::Exited(rank, _) | Event::Progress(rank, _) => self.executors.get(rank) == Some(&true),
            Event::Order(_) | Event::Found(_) | Event::Linked | Event::Unlinked | Event::Alarm => true,
        }
    }

    fn handle(&mut self, event: Event) {
        match &event {
            Event::Spawned(rank) => _ = self.executors.insert(*rank, true),
            Event::SpawnFailed(rank, _) | Event::Exited(rank, _) => _ = self.executors.remove(rank),
            Event::Order(_) | Event::Progress(..) | Event::Found(_) => {}
            Event::Linked | Event::Unlinked | Event::Alarm => {}
        }
        let mut effects = Vec::new();
        self.worker.handle(self.now, event, &mut effects);
        self.worker.check();
        effects.into_iter().for_each(|effect| self.apply(effect));
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn(start) => {
                assert_eq!(self.executors.insert(start.rank, false), None, "{} runs already", start.rank);
            }
            Effect::Signal(rank, ..) | Effect::Lease(rank, _) => {
                assert_eq!(self.executors.get(&rank), Some(&true), "{rank} does not run");
            }
            Effect::Forget(rank) => assert_eq!(self.executors.get(&rank), None, "{rank} has not ended"),
            Effect::Report(_) => {}
        }
    }

    /// Everything that was started starts, ends and is acknowledged.
    fn settle(&mut self) {
        for (rank, runs) in self.executors.clone() {
            if !runs {
                self.handle(Event::Spawned(rank));
            }
            self.handle(Event::Exited(
                rank,
                Ending { outcome: Outcome::Exited(0), stopped: None, at: self.now },
            ));
        }
        for held in self.worker.held() {
            assert_eq!(held.phase, Phase::Ended);
            self.handle(Event::Order(Order::Acknowledge(held.rank)));
        }
    }
}

proptest! {
    #[test]
    fn every_rank_is_let_go_once_it_ended_and_was_acknowledged(
        events in prop::collection::vec((0..20u64, event()), 0..120)
    ) {
        let mut world = World::new();
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
    fn alarms_always_move_the_deadline(events in prop::collection::vec((0..20u64, event()), 0..120)) {
        let mut world = World::new();
        for (pause, event) in events {
            world.now += Span::from_secs(pause);
            if world.is_possible(&event) {
                world.handle(event);
            }
            for _ in 0..8 {
                world.handle(Event::Alarm);
            }
            prop_assert!(world.worker.deadline().is_none_or(|due_at| due_at > world.now));
        }
    }
}
