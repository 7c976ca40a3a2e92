//! The whole cluster under virtual time: one queue of events, handled one after the other.
//!
//! Each event is passed to the production core that it concerns, and the effects of the core become new
//! events. Cores, policy and machines never see the queue, and no scheduling decision is made here.
//!
//! Start reading with [`World::run`]; the other files of this directory handle one kind of event each.

mod activity;
mod allotments;
mod checkpoints;
mod code;
mod external_events;
mod final_checks;
mod gpus;
mod head;
mod journal;
mod network;
mod plants;
mod requests;
mod suspension;
mod workers;

use std::collections::BTreeMap;

use cohabit_scheduler_core::Event;
use cohabit_types::{JobId, NodeId, Span, Time};

use crate::clients::Clients;
use crate::digest::Digest;
use crate::event_queue::EventQueue;
use crate::failure::{FailureKind, SimFailure, guarded};
use crate::gangs::Gangs;
use crate::head::HeadHost;
use crate::head_hooks::HeadHooks;
use crate::link::SimLink;
use crate::machine::SimMachine;
use crate::node::SimNode;
use crate::order_checks::OrderChecks;
use crate::planted_bug::PlantedBug;
use crate::random::Random;
use crate::recorder::{Recorder, TraceDetail};
use crate::reference::ReferenceModel;
use crate::scenario::{CheckLevel, Scenario};
use crate::sim_event::{DaemonSimEvent, HeadSimEvent, SimEvent};

/// How often the end of the run is checked in the quiet phase.
const CLEAN_UP_INTERVAL: Span = Span::from_secs(600);

/// A simulated cluster.
pub(crate) struct World<'s> {
    now: Time,
    queue: EventQueue<SimEvent>,
    head: HeadHost,
    nodes: Vec<SimNode>,
    /// By link number.
    links: Vec<SimLink>,
    clients: Clients,
    reference: ReferenceModel,
    order: OrderChecks,
    hooks: &'s mut dyn HeadHooks,
    gangs: Gangs,
    /// Whether the policy knows more of interference than the head was told.
    knowledge_changed: bool,
    /// Work that jobs had left when they saved a checkpoint, in seconds alone. All machines share the disk
    /// that holds it.
    saved: BTreeMap<JobId, f64>,
    delays: Random,
    planning: Random,
    commits: Random,
    breaks: Random,
    gpus: Random,
    allotments: Random,
    settings: Settings,
    plant: Option<PlantedBug>,
    /// How many nodes have something suspended.
    halted_nodes: usize,
    machines_set_up: u128,
    finished: bool,
    pub(crate) counters: RunCounters,
    pub(crate) digest: Digest,
    pub(crate) recorder: Recorder,
}

struct Settings {
    delay: (Span, Span),
    planning: (Span, Span),
    planning_limit: Span,
    commit: (Span, Span),
    quiet_at: Time,
    deadline_at: Time,
    retention: Span,
    max_running_jobs: Option<u64>,
    check_level: CheckLevel,
}

/// What is counted during a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RunCounters {
    /// Events handled by the production cores.
    pub events: u64,
    /// Ranks that were started.
    pub ranks: u64,
    /// Crashes of the head, of daemons and of machines.
    pub crashes: u64,
    /// Links that broke.
    pub breaks: u64,
    /// Ranks that were started as clients of an MPS server.
    pub clients: u64,
    /// MPS servers that broke, and GPUs that were lost.
    pub gpu_faults: u64,
    /// Jobs that plans stopped for others.
    pub stops: u64,
    /// Jobs that plans started because they had waited too long.
    pub overdue_starts: u64,
    /// Daemons, executors and machines that were suspended.
    pub suspensions: u64,
    /// Links of a worker that lies.
    pub lies: u64,
}

impl<'s> World<'s> {
    pub(crate) fn new(
        seed: u64,
        scenario: Scenario,
        keep: TraceDetail,
        hooks: &'s mut dyn HeadHooks,
    ) -> World<'s> {
        let (head, reference) =
            (HeadHost::new(&scenario), ReferenceModel::new(plants::told_config(&scenario)));
        let mut world = World {
            now: Time::EPOCH,
            queue: EventQueue::new(),
            head,
            nodes: Vec::new(),
            links: Vec::new(),
            clients: Clients::new(scenario.submissions),
            reference,
            order: OrderChecks::of(&scenario.policy),
            hooks,
            gangs: Gangs::on(&scenario.shapes),
            knowledge_changed: false,
            saved: BTreeMap::new(),
            delays: Random::stream(seed, "delays"),
            planning: Random::stream(seed, "planning"),
            commits: Random::stream(seed, "commits"),
            breaks: Random::stream(seed, "breaks"),
            gpus: Random::stream(seed, "gpus"),
            allotments: Random::stream(seed, "allotments"),
            settings: Settings {
                delay: scenario.delay,
                planning: scenario.planning,
                planning_limit: scenario.planning_limit,
                commit: scenario.commit,
                quiet_at: scenario.quiet_at,
                deadline_at: scenario.quiet_at + scenario.end_timeout,
                retention: scenario.config.retention,
                max_running_jobs: scenario.config.max_running_jobs,
                check_level: scenario.check_level,
            },
            plant: scenario.plant,
            halted_nodes: 0,
            machines_set_up: 0,
            finished: false,
            counters: RunCounters::default(),
            digest: Digest::new(),
            recorder: Recorder::new(keep),
        };
        world.queue.put(Time::EPOCH, SimEvent::HeadBack);
        for shape in scenario.shapes {
            let machine = SimMachine::new(shape, scenario.hardware.clone(), scenario.orphan_grace)
                .with_plant(scenario.plant);
            let id = world.new_node_id();
            let announced = scenario.announced_grace.unwrap_or(scenario.orphan_grace);
            world.nodes.push(SimNode::new(id, machine, scenario.heartbeat, announced));
            world.queue.put(Time::EPOCH, SimEvent::DaemonBack(world.nodes.len() - 1, 0));
        }
        for (at, event) in scenario.external_events {
            world.queue.put_in_order(at, SimEvent::ExternalEvent(event));
        }
        match scenario.check_level {
            CheckLevel::Everything => {
                world.queue.put(scenario.quiet_at, SimEvent::Quiet);
                world.queue.put(scenario.quiet_at, SimEvent::CleanUp);
            }
            CheckLevel::Outcomes => world.queue.put(world.settings.deadline_at, SimEvent::CleanUp),
        }
        world
    }
}

impl World<'_> {
    /// Handles events until everything has ended.
    ///
    /// # Errors
    /// The first violated invariant, or that the run did not end in time.
    pub(crate) fn run(&mut self) -> Result<(), SimFailure> {
        while !self.finished {
            let Some((at, event)) = self.queue.next() else {
                return Err(self.failure(FailureKind::NeverEnded, "the event queue is empty".into()));
            };
            self.now = at;
            guarded(FailureKind::Crash, at, || self.dispatch(event))??;
        }
        match self.settings.check_level {
            CheckLevel::Everything => self.verify_final_state(),
            CheckLevel::Outcomes => Ok(()),
        }
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// The lines of the trace that were kept.
    pub(crate) fn into_trace(self) -> Vec<String> {
        self.recorder.into_lines()
    }

    pub(super) fn dispatch(&mut self, event: SimEvent) -> Result<(), SimFailure> {
        let Some(event) = self.unless_halted(event) else { return Ok(()) };
        match event {
            SimEvent::ExternalEvent(event) => self.handle_external_event(event),
            SimEvent::Head(generation, at_head)
                if self.head.is_up() && self.head.generation == generation =>
            {
                self.at_head(at_head)
            }
            SimEvent::Daemon(node, generation, at_daemon) if self.is_alive(node, generation) => {
                self.at_daemon(node, at_daemon)
            }
            SimEvent::Head(..) | SimEvent::Daemon(..) => Ok(()),
            SimEvent::Machine(node, timer) => self.at_machine(node, timer),
            SimEvent::PowerOn(node) => self.power_on(node),
            SimEvent::HeadBack => self.restart_head(),
            SimEvent::DaemonBack(node, generation) => self.restart_daemon(node, generation),
            SimEvent::Arrival(link, message) => self.handle_arrival(link, message),
            SimEvent::Read(link, message) => self.read(link, message),
            SimEvent::Worker(node, generation, event) if self.is_alive(node, generation) => {
                self.worker_event(node, event)
            }
            SimEvent::Worker(..) => Ok(()),
            SimEvent::Continue(node, halts) => self.let_go_on(node, halts),
            SimEvent::ResumeExecutor(node, rank) => self.resume_executor(node, rank),
            SimEvent::KilledLongAgo(node, generation, rank) => self.check_killed(node, generation, rank),
            SimEvent::Broken(link, side) => self.handle_link_break(link, side),
            SimEvent::Request(client, by, request) => self.request(client, by, request),
            SimEvent::Reply(client, reply) => self.reply(client, reply),
            SimEvent::RetrySubmission(index) => {
                self.submit(index);
                Ok(())
            }
            SimEvent::Quiet => self.begin_quiet_phase(),
            SimEvent::CleanUp => self.clean_up(),
        }
    }

    fn at_head(&mut self, event: HeadSimEvent) -> Result<(), SimFailure> {
        match event {
            HeadSimEvent::Alarm(setting) if self.head.alarm.rings(setting) => self.head_event(Event::Alarm),
            HeadSimEvent::Alarm(_) => Ok(()),
            HeadSimEvent::Written => self.journal_written(),
            HeadSimEvent::Planned(request_id, plan) => self.head_event(Event::Planned(request_id, plan)),
            HeadSimEvent::OutOfTime(request_id) => {
                let plan = self.head.plan_fifo(self.head_now());
                self.head_event(Event::Planned(request_id, plan))
            }
            HeadSimEvent::Relabelled(key, report) => self.head_event(Event::Report(key, report)),
            HeadSimEvent::Closed(key) => self.head_event(Event::Lost(key, "the head closed the link".into())),
        }
    }

    fn at_daemon(&mut self, node: usize, event: DaemonSimEvent) -> Result<(), SimFailure> {
        match event {
            DaemonSimEvent::Alarm(setting) => self.daemon_alarm(node, setting),
            DaemonSimEvent::Dial => self.dial(node, Span::ZERO),
            DaemonSimEvent::GiveUp(link) => self.abandon_handshake(node, link),
            DaemonSimEvent::Redial { times, lag } => self.redial(node, times, lag),
            DaemonSimEvent::Mps(device, order, chance) => {
                self.deliver_mps_answer(node, device, order, chance)
            }
            DaemonSimEvent::CodeFetched(attempt) => self.code_fetched(node, attempt),
            DaemonSimEvent::CheckpointsFetched(attempt, node_rank) => {
                self.checkpoints_fetched(node, attempt, node_rank)
            }
            DaemonSimEvent::Allotted(attempt, in_force) => self.allotted(node, attempt, in_force),
            DaemonSimEvent::Forget(rank) => {
                self.nodes[node].machine.forget(rank);
                Ok(())
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.now >= self.settings.quiet_at
    }

    /// Schedules an event after the delay of a message.
    fn schedule_delivery(&mut self, event: SimEvent) {
        let delay = self.delays.span(self.settings.delay);
        self.queue.put(self.now + delay, event);
    }

    /// Adds an event to the digest by which two runs of one seed are compared.
    fn record_event(&mut self, event: &impl std::fmt::Debug) {
        match self.settings.check_level {
            CheckLevel::Everything => self.digest.record_event(self.now, event),
            CheckLevel::Outcomes => {}
        }
    }

    const fn new_node_id(&mut self) -> NodeId {
        self.machines_set_up += 1;
        NodeId(uuid::Uuid::from_u128(self.machines_set_up))
    }

    const fn failure(&self, kind: FailureKind, detail: String) -> SimFailure {
        SimFailure { kind, at: self.now, detail }
    }

    /// Runs a check that looks at much of the cluster; evaluations skip these.
    fn check(&self, check: impl FnOnce() -> Result<(), String>) -> Result<(), SimFailure> {
        match self.settings.check_level {
            CheckLevel::Everything => self.invariant(check()),
            CheckLevel::Outcomes => Ok(()),
        }
    }

    fn invariant<T>(&self, held: Result<T, String>) -> Result<T, SimFailure> {
        held.map_err(|detail| self.failure(FailureKind::Invariant, detail))
    }
}
