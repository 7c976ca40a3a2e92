//! One seed: the phases of a run and its result.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::{Coordinator, CoordinatorNode, TaskClass};
use cohabit_types::{JobId, RankId, Share, Span, Time};

use super::counters::ApplicationCounters;
use super::event::{ApplicationEvent, HeadEvent, Pair};
use super::gang_sizes::GangSizes;
use super::head::HeadModel;
use super::ledger::Ledger;
use super::network::SessionNetwork;
use super::node::SimulatedNodes;
use super::node_index::NodeIndex;
use super::object_ledger::ObjectLedger;
use super::place_ledger::PlaceLedger;
use super::planted_bug::ApplicationBug;
use super::process::ProcessCode;
use super::simulated_fetch::SimulatedFetches;
use super::simulated_store::SimulatedStore;
use super::task_ledger::TaskLedger;
use super::task_plan::TASK_CLASSES;
use super::world::{ApplicationWorld, Drained, ProgramPhase};
use crate::digest::Digest;
use crate::event_queue::EventQueue;
use crate::failure::{FailureKind, SimFailure, guarded};
use crate::random::Random;
use crate::recorder::{Recorder, TraceDetail};

const MAX_EVENTS: u64 = 3_000_000;

/// With a bug planted: one that keeps an application busy for ever is found soon.
const MAX_EVENTS_WITH_BUG: u64 = 1_000_000;

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationRun {
    /// Digest of all events and effects: two runs of one seed have the same.
    pub digest: u64,
    /// What was counted.
    pub counters: ApplicationCounters,
    /// Simulated time.
    pub simulated: Span,
    /// The failure, if the run failed.
    pub failure: Option<SimFailure>,
    /// The lines of the trace that were kept.
    pub trace: Vec<String>,
}

/// Runs an application that is drawn from the seed twice. Two runs that differ are a failure.
#[must_use]
pub fn run_application(seed: u64, keep: TraceDetail) -> ApplicationRun {
    let mut first = run_once(seed, None, keep);
    let second = run_once(seed, None, TraceDetail::Nothing);
    if first.failure.is_none() && (first.digest, first.simulated) != (second.digest, second.simulated) {
        first.failure = Some(SimFailure {
            kind: FailureKind::Differs,
            at: Time::EPOCH + first.simulated,
            detail: format!("the digests are {:016x} and {:016x}", first.digest, second.digest),
        });
    }
    first
}

/// Runs an application once, with a bug planted.
pub(super) fn run_once(seed: u64, plant: Option<ApplicationBug>, keep: TraceDetail) -> ApplicationRun {
    let mut world = ApplicationWorld::draw(seed, plant, keep);
    let result = guarded(FailureKind::Crash, Time::EPOCH, || world.run());
    let failure = match result {
        Ok(failure) => failure,
        Err(crash) => Some(SimFailure { at: world.now, ..crash }),
    };
    ApplicationRun {
        digest: world.digest.value(),
        counters: world.counters,
        simulated: world.now.since(Time::EPOCH),
        failure,
        trace: world.recorder.into_lines(),
    }
}

impl ApplicationWorld {
    fn draw(seed: u64, plant: Option<ApplicationBug>, keep: TraceDetail) -> ApplicationWorld {
        let mut random = Random::stream(seed, "application");
        let own = JobId::new(1).attempt(1).rank(0);
        let ceiling = random.chance(0.6).then(|| Share(500 * random.between(2, 8) as u32));
        let capacity = random.chance(0.8).then(|| Share(1_000 * random.between(1, 4) as u32));
        let actors_have_gpus = random.chance(0.5);
        let quiet_at = Time::EPOCH + random.span((Span::from_secs(2), Span::from_secs(40)));
        let store_budget = random.between(4, 200);
        let mut far_random = Random::stream(seed, "nodes of an application");
        let count = far_random.between(1, 3) as usize;
        let storing = if count > 1 && far_random.chance(0.5) { 0.6 } else { 0.15 };
        let nodes = SimulatedNodes::new(own, count, far_random);
        let node = CoordinatorNode { name: NodeIndex::FIRST.name(), at: Some(nodes.address(own)) };
        let mut world = ApplicationWorld {
            now: Time::EPOCH,
            queue: EventQueue::new(),
            random,
            own,
            coordinator: Coordinator::new(own, node, ceiling, capacity),
            processes: BTreeMap::new(),
            network: SessionNetwork::default(),
            head: HeadModel::new(own.job()),
            ceiling,
            capacity,
            actors_have_gpus,
            gang_sizes: GangSizes::new(seed),
            without_room: Vec::new(),
            ledger: Ledger::default(),
            task_ledger: TaskLedger::default(),
            objects: ObjectLedger::default(),
            places: PlaceLedger::default(),
            nodes,
            stores: BTreeMap::from([(own, SimulatedStore::new(store_budget))]),
            storing,
            store_budget,
            own_store_arrivals: [Time::EPOCH; 2],
            fetches: SimulatedFetches::default(),
            silenced: BTreeSet::new(),
            asked_at: Time::EPOCH,
            disturbed_at: Time::EPOCH,
            written_off: BTreeSet::new(),
            task_classes: Vec::new(),
            early_death: 0.0,
            most_runners: usize::MAX,
            phase: ProgramPhase::Work,
            quiet_at,
            death: 0.0,
            plant,
            unsigned: BTreeMap::new(),
            codes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            last_tag: 0,
            exit: None,
            counters: ApplicationCounters::default(),
            digest: Digest::new(),
            recorder: Recorder::new(keep),
        };
        world.draw_task_classes();
        world.draw_faults();
        world.draw_node_faults();
        world.start_main();
        for _ in 0..world.random.between(0, 3) {
            let at = Time::EPOCH + world.random.span((Span::from_millis(1), Span::from_secs(10)));
            world.queue.put(at, ApplicationEvent::Head(HeadEvent::StartMain));
        }
        world
    }

    /// Two classes without GPUs and two with: the last one perhaps with more than the ceiling.
    fn draw_task_classes(&mut self) {
        let most = [0, 0, 2, 6];
        for (number, most) in (0..TASK_CLASSES).zip(most) {
            let gpus = Share(if most == 0 { 0 } else { 250 * self.random.between(1, most) as u32 });
            self.task_classes.push(TaskClass { gpus, claims: number.to_le_bytes().to_vec().into() });
            if self.gpu_limit().is_some_and(|limit| gpus > limit) {
                self.task_ledger.refused(number as usize);
            }
        }
    }

    /// Lets programs run among faults, then gives everything back and checks that nothing is left.
    fn run(&mut self) -> Option<SimFailure> {
        if let Some(result) = self.after_drain() {
            return result;
        }
        if let Some(waiting) = self.find_waiting_task() {
            return self.failed(FailureKind::NeverEnded, waiting);
        }
        self.quiet_at = self.now;
        self.phase = ProgramPhase::WindDown;
        let job = self.start_main();
        if let Some(result) = self.after_drain() {
            return result;
        }
        let stopper = job.attempt(1).rank(0);
        self.wind_down(stopper);
        if let Some(result) = self.after_drain() {
            return result;
        }
        self.drop_all_handles(stopper);
        if let Some(result) = self.after_drain() {
            return result;
        }
        if let Some(left) = self.find_leftover().filter(|_| !self.has_circle()) {
            return self.failed(FailureKind::NeverEnded, left);
        }
        self.counters.rests += 1;
        let members: Vec<RankId> = self.processes.keys().copied().collect();
        let is_store = |member: &RankId| self.processes[member].code == ProcessCode::Store;
        let members: Vec<RankId> = members.into_iter().filter(|member| !is_store(member)).collect();
        members.into_iter().for_each(|member| self.kill(member, 0));
        match self.after_drain() {
            Some(result) => result,
            None => self.failed(FailureKind::NeverEnded, "the application does not exit".to_owned()),
        }
    }

    /// Handles all events. The result of the run, if it is over.
    fn after_drain(&mut self) -> Option<Option<SimFailure>> {
        let most = if self.plant.is_some() { MAX_EVENTS_WITH_BUG } else { MAX_EVENTS };
        match self.drain(most) {
            Drained::AtRest => None,
            Drained::Endless => {
                Some(self.failed(FailureKind::NeverEnded, format!("{most} events and no end")))
            }
            Drained::Stopped => {
                let violation = self.ledger.violation.take();
                Some(violation.and_then(|detail| self.failed(FailureKind::Invariant, detail)))
            }
        }
    }

    fn failed(&self, kind: FailureKind, detail: String) -> Option<SimFailure> {
        Some(SimFailure { kind, at: self.now, detail })
    }

    /// What is left although all handles were dropped and all calls have ended.
    fn find_leftover(&self) -> Option<String> {
        for (member, process) in &self.processes {
            let (calls, requests) = (process.calls.len() + process.task_calls.len(), process.requests.len());
            if !process.streams.is_empty() {
                return Some(format!("{member} reads {} streams", process.streams.len()));
            }
            if calls + requests > 0 {
                return Some(format!("{member} waits for {calls} calls and {requests} answers"));
            }
            let objects = process.storing.len() + process.reading.len() + process.opening.len();
            if objects + process.unread_needs.len() > 0 {
                let needs = &process.unread_needs;
                return Some(format!("{member} stores or reads {objects} objects and needs {needs:?}"));
            }
            if process.code == ProcessCode::Actor {
                return Some(format!("{member} holds {:?}, which nobody holds", process.live));
            }
            if process.code == ProcessCode::Tasks {
                let tasks = process.tasks.len();
                return Some(format!("{member} serves tasks, of which it runs {tasks}"));
            }
            if !process.core.is_idle() {
                return Some(format!("{member} is not idle"));
            }
        }
        if !self.coordinator.is_idle() {
            return Some(format!(
                "the coordinator keeps an actor, a runner, an object or a counter of handles: {:?}",
                self.coordinator
            ));
        }
        if let Some(left) = self.find_in_store() {
            return Some(left);
        }
        if !self.fetches.is_empty() {
            return Some(format!("fetches do not end: {:?}", self.fetches));
        }
        let kept = self.network.channels.iter().find(|(_, channel)| channel.unacknowledged() > 0);
        kept.map(|(Pair { dialer, acceptor }, channel)| {
            let frames = channel.unacknowledged();
            format!("{frames} frames are kept to be sent again between {dialer} and {acceptor}")
        })
    }
}
