//! The whole cluster under virtual time: one agenda, one happening after the other.
//!
//! Each happening is handed to the production core that it concerns, and what the core wants done becomes new
//! happenings. Cores, policy and machines never see the agenda, and nothing here decides what they decide.

mod external_events;
mod final_checks;
mod gpus;
mod head;
mod journal;
mod network;
mod plants;
mod requests;
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
use crate::link::Link;
use crate::machine::Machine;
use crate::node::SimNode;
use crate::planted_bug::PlantedBug;
use crate::random::Random;
use crate::recorder::{Recorder, TraceDetail};
use crate::reference::ReferenceModel;
use crate::scenario::{CheckLevel, Scenario};
use crate::sim_event::{DaemonSimEvent, HeadSimEvent, SimEvent};

/// How often somebody looks whether everything has ended.
const CLEAN_UP_INTERVAL: Span = Span::from_secs(600);

/// A cluster.
pub(crate) struct World<'s> {
    now: Time,
    queue: EventQueue<SimEvent>,
    head: HeadHost,
    nodes: Vec<SimNode>,
    /// By number.
    links: Vec<Link>,
    clients: Clients,
    reference: ReferenceModel,
    shell: &'s mut dyn HeadHooks,
    gangs: Gangs,
    /// Work that jobs left to do and saved the rest of, on a disk that all machines share.
    saved: BTreeMap<JobId, f64>,
    delays: Random,
    planning: Random,
    commits: Random,
    breaks: Random,
    gpus: Random,
    settings: Settings,
    plant: Option<PlantedBug>,
    machines_set_up: u128,
    finished: bool,
    pub(crate) tally: RunCounters,
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
    watch: CheckLevel,
}

/// What was counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RunCounters {
    /// Events that cores handled.
    pub events: u64,
    /// Ranks that were started.
    pub ranks: u64,
    /// Head, daemons and machines that crashed.
    pub crashes: u64,
    /// Links that broke.
    pub breaks: u64,
    /// Ranks that were started as clients of an MPS server.
    pub clients: u64,
    /// MPS servers that broke, and GPUs that were lost.
    pub gpu_faults: u64,
}

impl<'s> World<'s> {
    pub(crate) fn new(
        seed: u64,
        scenario: Scenario,
        keep: TraceDetail,
        shell: &'s mut dyn HeadHooks,
    ) -> World<'s> {
        let head = HeadHost::new(&scenario);
        let mut world = World {
            now: Time::EPOCH,
            queue: EventQueue::new(),
            head,
            nodes: Vec::new(),
            links: Vec::new(),
            clients: Clients::new(scenario.submissions),
            reference: ReferenceModel::new(scenario.config.clone()),
            shell,
            gangs: Gangs::on(&scenario.shapes),
            saved: BTreeMap::new(),
            delays: Random::stream(seed, "delays"),
            planning: Random::stream(seed, "planning"),
            commits: Random::stream(seed, "commits"),
            breaks: Random::stream(seed, "breaks"),
            gpus: Random::stream(seed, "gpus"),
            settings: Settings {
                delay: scenario.delay,
                planning: scenario.planning,
                planning_limit: scenario.planning_limit,
                commit: scenario.commit,
                quiet_at: scenario.quiet_at,
                deadline_at: scenario.quiet_at + scenario.patience,
                retention: scenario.config.retention,
                watch: scenario.watch,
            },
            plant: scenario.plant,
            machines_set_up: 0,
            finished: false,
            tally: RunCounters::default(),
            digest: Digest::new(),
            recorder: Recorder::new(keep),
        };
        world.queue.put(Time::EPOCH, SimEvent::HeadBack);
        for shape in scenario.shapes {
            let machine = Machine::new(shape, scenario.hardware.clone(), scenario.orphan_grace);
            let id = world.new_node_id();
            let announced = scenario.announced_grace.unwrap_or(scenario.orphan_grace);
            world.nodes.push(SimNode::new(id, machine, scenario.heartbeat, announced));
            world.queue.put(Time::EPOCH, SimEvent::DaemonBack(world.nodes.len() - 1, 0));
        }
        for (at, act) in scenario.acts {
            world.queue.put(at, SimEvent::ExternalEvent(act));
        }
        match scenario.watch {
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
    /// Lets everything happen until all has ended.
    pub(crate) fn run(&mut self) -> Result<(), SimFailure> {
        while !self.finished {
            let Some((at, what)) = self.queue.next() else {
                return Err(self.failure(FailureKind::NeverEnded, "nothing happens any more".into()));
            };
            self.now = at;
            guarded(FailureKind::Crash, at, || self.dispatch(what))??;
        }
        match self.settings.watch {
            CheckLevel::Everything => self.verify(),
            CheckLevel::Outcomes => Ok(()),
        }
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// What happened, as far as it was kept.
    pub(crate) fn into_trace(self) -> Vec<String> {
        self.recorder.into_lines()
    }

    fn dispatch(&mut self, what: SimEvent) -> Result<(), SimFailure> {
        match what {
            SimEvent::ExternalEvent(act) => self.act(act),
            SimEvent::Head(life, at_head) if self.head.is_up() && self.head.life == life => {
                self.at_head(at_head)
            }
            SimEvent::Daemon(node, life, at_daemon) if self.is_alive(node, life) => {
                self.at_daemon(node, at_daemon)
            }
            SimEvent::Head(..) | SimEvent::Daemon(..) => Ok(()),
            SimEvent::Machine(node, pulse) => self.at_machine(node, pulse),
            SimEvent::PowerOn(node) => self.power_on(node),
            SimEvent::HeadBack => self.restart_head(),
            SimEvent::DaemonBack(node, life) => self.restart_daemon(node, life),
            SimEvent::Arrival(link, message) => self.arrival(link, message),
            SimEvent::Broken(link, side) => self.broken(link, side),
            SimEvent::Request(client, by, request) => self.request(client, by, request),
            SimEvent::Reply(client, reply) => self.reply(client, reply),
            SimEvent::RetrySubmission(index) => {
                self.submit(index);
                Ok(())
            }
            SimEvent::Quiet => self.quiet(),
            SimEvent::CleanUp => self.clean_up(),
        }
    }

    fn at_head(&mut self, what: HeadSimEvent) -> Result<(), SimFailure> {
        match what {
            HeadSimEvent::Alarm(setting) if self.head.alarm.rings(setting) => self.head_event(Event::Alarm),
            HeadSimEvent::Alarm(_) => Ok(()),
            HeadSimEvent::Written => self.journal_written(),
            HeadSimEvent::Planned(ticket, plan) => self.head_event(Event::Planned(ticket, plan)),
            HeadSimEvent::OutOfTime(ticket) => {
                let plan = self.head.fall_back(self.head_now());
                self.head_event(Event::Planned(ticket, plan))
            }
            HeadSimEvent::Relabelled(key, report) => self.head_event(Event::Report(key, report)),
            HeadSimEvent::Closed(key) => self.head_event(Event::Lost(key, "the head closed the link".into())),
        }
    }

    fn at_daemon(&mut self, node: usize, what: DaemonSimEvent) -> Result<(), SimFailure> {
        match what {
            DaemonSimEvent::Alarm(setting) => self.daemon_alarm(node, setting),
            DaemonSimEvent::Dial => self.dial(node, Span::ZERO),
            DaemonSimEvent::GiveUp(link) => self.give_up(node, link),
            DaemonSimEvent::Redial { times, lag } => self.redial(node, times, lag),
            DaemonSimEvent::Mps(device, order, luck) => self.mps_answers(node, device, order, luck),
            DaemonSimEvent::Forget(rank) => {
                self.nodes[node].machine.forget(rank);
                Ok(())
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.now >= self.settings.quiet_at
    }

    /// Puts down something that happens when a message has travelled.
    fn after_travel(&mut self, what: SimEvent) {
        let delay = self.delays.span(self.settings.delay);
        self.queue.put(self.now + delay, what);
    }

    /// Two runs of one seed are compared by what is taken in here.
    fn record_event(&mut self, what: &impl std::fmt::Debug) {
        match self.settings.watch {
            CheckLevel::Everything => self.digest.record_event(self.now, what),
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

    /// Checks that look at much of the cluster; an evaluation has no time for them.
    fn check(&self, check: impl FnOnce() -> Result<(), String>) -> Result<(), SimFailure> {
        match self.settings.watch {
            CheckLevel::Everything => self.invariant(check()),
            CheckLevel::Outcomes => Ok(()),
        }
    }

    fn invariant(&self, held: Result<(), String>) -> Result<(), SimFailure> {
        held.map_err(|detail| self.failure(FailureKind::Invariant, detail))
    }
}
