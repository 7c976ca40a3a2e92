//! The processes of an application, event by event.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::{ActorId, Coordinator, FromCoordinator, HeldId, TaskClass, ToCaller};
use cohabit_types::{JobId, RankId, Share, Span, Time};

use super::counters::ApplicationCounters;
use super::event::{AnyFrame, ApplicationEvent, End, Pair};
use super::gang_sizes::GangSizes;
use super::head::HeadModel;
use super::ledger::{ActorHistory, Ledger};
use super::network::SessionNetwork;
use super::node::SimulatedNodes;
use super::node_index::NodeIndex;
use super::object_ledger::ObjectLedger;
use super::place_ledger::PlaceLedger;
use super::planted_bug::ApplicationBug;
use super::process::Process;
use super::simulated_fetch::SimulatedFetches;
use super::simulated_store::SimulatedStore;
use super::task_ledger::TaskLedger;
use crate::digest::Digest;
use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::recorder::Recorder;

/// How long the head takes for anything.
pub(super) const HEAD_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_secs(2));
pub(super) const STEP_DELAY: (Span, Span) = (Span::from_micros(1), Span::from_millis(100));
pub(super) const SOON: (Span, Span) = (Span::from_micros(1), Span::from_millis(5));
const LONG: (Span, Span) = (Span::from_millis(5), Span::from_secs(3));

/// Everything.
#[derive(Debug)]
pub(super) struct ApplicationWorld {
    pub(super) now: Time,
    pub(super) queue: EventQueue<ApplicationEvent>,
    pub(super) random: Random,
    pub(super) own: RankId,
    pub(super) coordinator: Coordinator,
    pub(super) processes: BTreeMap<RankId, Process>,
    pub(super) network: SessionNetwork,
    pub(super) head: HeadModel,
    pub(super) ceiling: Option<Share>,
    /// The GPUs of all nodes.
    pub(super) capacity: Option<Share>,
    pub(super) actors_have_gpus: bool,
    pub(super) gang_sizes: GangSizes,
    /// Jobs for whose next attempt there are too few GPUs.
    pub(super) without_room: Vec<JobId>,
    pub(super) ledger: Ledger,
    pub(super) task_ledger: TaskLedger,
    pub(super) objects: ObjectLedger,
    /// Where they lie, as the coordinator was told.
    pub(super) places: PlaceLedger,
    pub(super) nodes: SimulatedNodes,
    /// The stores that live, by their processes.
    pub(super) stores: BTreeMap<RankId, SimulatedStore>,
    /// Chance that the value of a task lies in a store.
    pub(super) storing: f64,
    /// The memory of each store.
    pub(super) store_budget: u64,
    /// When the last message arrives, to and from the store in the coordinator's process.
    pub(super) own_store_arrivals: [Time; 2],
    pub(super) fetches: SimulatedFetches,
    /// Nodes whose stores the coordinator has not heard of for too long at some time.
    pub(super) silenced: BTreeSet<NodeIndex>,
    /// When runners were last asked whether they are blocked.
    pub(super) asked_at: Time,
    /// When a runner last ended or gave up a task from outside.
    pub(super) disturbed_at: Time,
    /// Members that lived when the coordinator took them for dead.
    pub(super) written_off: BTreeSet<RankId>,
    /// The classes of runners of tasks, by their number.
    pub(super) task_classes: Vec<TaskClass>,
    /// Chance that a runner of tasks ends before it connects.
    pub(super) early_death: f64,
    /// The head refuses more runners of a class.
    pub(super) most_runners: usize,
    pub(super) phase: ProgramPhase,
    /// Faults happen before this time only.
    pub(super) quiet_at: Time,
    /// Chance that a process dies before an effect.
    pub(super) death: f64,
    pub(super) plant: Option<ApplicationBug>,
    /// By holder, lender and what is held: for `UnsignedCounters`.
    pub(super) unsigned: BTreeMap<(RankId, RankId, HeldId), u64>,
    /// How processes ended, until the head learns of it.
    pub(super) codes: BTreeMap<RankId, i32>,
    /// Jobs of actors.
    pub(super) jobs: BTreeMap<ActorId, JobId>,
    pub(super) last_tag: u64,
    pub(super) exit: Option<i32>,
    pub(super) counters: ApplicationCounters,
    pub(super) digest: Digest,
    pub(super) recorder: Recorder,
}

/// What users' code does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramPhase {
    /// Programs run.
    Work,
    /// Programs give everything back.
    WindDown,
}

impl ApplicationWorld {
    pub(super) fn after(&mut self, delay: (Span, Span), event: ApplicationEvent) {
        let at = self.now + self.random.span(delay);
        self.queue.put(at, event);
    }

    /// Handles events until there are none, or until something is violated.
    pub(super) fn drain(&mut self, most: u64) -> Drained {
        while let Some((at, event)) = self.queue.next() {
            self.now = at;
            self.counters.events += 1;
            self.digest.record_event(at, &event);
            self.recorder.add(at, || format!("{event:?}"));
            self.handle(event);
            if self.ledger.violation.is_some() || self.exit.is_some() {
                return Drained::Stopped;
            }
            if self.counters.events > most {
                return Drained::Endless;
            }
        }
        Drained::AtRest
    }

    fn handle(&mut self, event: ApplicationEvent) {
        match event {
            ApplicationEvent::Dial(pair) => self.dial(pair),
            ApplicationEvent::Deliver { pair, link, at, content } => self.deliver(pair, link, at, content),
            ApplicationEvent::Notice { pair, link, at } => self.notice(pair, link, at),
            ApplicationEvent::Acknowledge { pair, at } => self.acknowledge(pair, at),
            ApplicationEvent::Step(member) => self.step(member),
            ApplicationEvent::ReadAll(member) => self.read_all_objects(member),
            ApplicationEvent::MethodEnd { member, ticket } => self.end_method(member, ticket),
            ApplicationEvent::TaskStep { member, ticket } => self.step_task(member, ticket),
            ApplicationEvent::Read { member, call } => self.read_stream(member, call),
            ApplicationEvent::Rested { member, rest } => {
                self.drive(member, |it, effects| it.core.rested(rest, effects));
            }
            ApplicationEvent::Abandon { member, ticket } => self.abandon(member, ticket),
            ApplicationEvent::Settle { member, code } => self.settle(member, code),
            ApplicationEvent::ConstructorEnd { member, incarnation } => {
                self.end_constructor(member, incarnation);
            }
            ApplicationEvent::AskStore { member, store, request } => {
                self.store_receives(member, store, request);
            }
            ApplicationEvent::StoreReplies { member, store, reply } => {
                self.store_reply_arrives(member, store, reply);
            }
            ApplicationEvent::Store { store, work } => self.store_works(store, work),
            ApplicationEvent::OwnStoreHears(frame) => self.store_hears(self.own, frame),
            ApplicationEvent::OwnStoreSays(frame) => self.own_store_said(frame),
            ApplicationEvent::FetchEnds(number) => self.fetch_ends(number),
            ApplicationEvent::Filled { member, store, object } => self.fill(member, store, object),
            ApplicationEvent::Unmap { member, store, object } => self.unmap(member, store, object),
            ApplicationEvent::Silent { member, since } => self.silent(member, since),
            ApplicationEvent::NodeEnds(node, outage) => self.node_ends(node, outage),
            ApplicationEvent::GiveUpNode(node, outage) => self.give_up_node(node, outage),
            ApplicationEvent::NodeReturns(node) => self.node_returns(node),
            ApplicationEvent::JoinNodes(one, other) => self.nodes.join(one, other),
            ApplicationEvent::Fault(fault) => self.inject(fault),
            ApplicationEvent::Head(event) => self.handle_by_head(event),
        }
    }

    pub(super) fn receive_frame(&mut self, pair: Pair, at: End, frame: AnyFrame) {
        match (frame, at) {
            (AnyFrame::ToCoordinator(frame), End::Acceptor) => self.coordinator_receives(pair.dialer, frame),
            (AnyFrame::FromCoordinator(frame), End::Dialer) => {
                self.forget_handovers(pair.dialer, &frame);
                if self.plant == Some(ApplicationBug::LostReturn)
                    && matches!(frame, FromCoordinator::RunnerEnded { .. })
                {
                    return;
                }
                if frame == FromCoordinator::End {
                    self.process(pair.dialer).was_told_to_end = true;
                }
                if matches!(frame, FromCoordinator::ServeTasks { .. }) {
                    self.process(pair.dialer).serves = true;
                }
                self.drive(pair.dialer, |it, effects| it.core.receive(frame, effects));
            }
            (AnyFrame::ToCallee(frame), End::Acceptor) => self.drive(pair.acceptor, |it, effects| {
                it.core.receive_from_caller(pair.dialer, frame, effects);
            }),
            (AnyFrame::ToCaller(frame), End::Dialer) => self.drive(pair.dialer, |it, effects| {
                it.core.receive_from_callee(pair.acceptor, frame, effects);
            }),
            (AnyFrame::ToCoordinator(_) | AnyFrame::ToCallee(_), End::Dialer)
            | (AnyFrame::FromCoordinator(_) | AnyFrame::ToCaller(_), End::Acceptor) => {
                self.ledger.violated("a frame went the wrong way".to_owned());
            }
        }
    }

    /// Whether the accepting process of a new connection lives and lets the other one in.
    pub(super) fn admits(&self, pair: Pair) -> bool {
        if pair.acceptor == self.own {
            self.coordinator.admits(pair.dialer)
        } else {
            self.processes.get(&pair.acceptor).is_some_and(|it| it.core.admits(pair.dialer))
        }
    }

    /// For `ForgottenHandover`: as if a runner that has ended had given back all tasks.
    fn forget_handovers(&mut self, member: RankId, frame: &FromCoordinator) {
        if let FromCoordinator::MemberEnded { member: runner } = *frame
            && self.plant == Some(ApplicationBug::ForgottenHandover)
        {
            let process = self.processes.get(&member);
            let calls: Vec<_> = process.into_iter().flat_map(|it| it.task_calls.keys().copied()).collect();
            for call in calls {
                self.drive(member, |it, effects| {
                    it.core.receive_from_callee(runner, ToCaller::Returned { call }, effects);
                });
            }
        }
    }

    /// Whether the job of an actor has ended, and how its processes fared.
    pub(super) fn history(&self, actor: ActorId) -> ActorHistory {
        let job = self.jobs.get(&self.ledger.gang_of(actor));
        let record = job.and_then(|job| self.head.jobs.get(job));
        let has_died = |job: &JobId| self.head.report(*job).is_some_and(|it| it.ended_attempts > 0);
        ActorHistory {
            died: job.is_some_and(has_died),
            given_up: record.is_some_and(|it| it.ended.is_some() && !it.cancelled),
        }
    }

    /// The process of a main or actor does its next step soon.
    pub(super) fn step_soon(&mut self, member: RankId) {
        self.after(STEP_DELAY, ApplicationEvent::Step(member));
    }

    pub(super) fn method_ends_soon(&mut self, event: ApplicationEvent) {
        let delay = if self.random.chance(0.8) { SOON } else { LONG };
        self.after(delay, event);
    }
}

/// Why the events ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    AtRest,
    Stopped,
    Endless,
}
