//! The whole cluster under virtual time: one agenda, one happening after the other.
//!
//! Each happening is handed to the production core that it concerns, and what the core wants done becomes new
//! happenings. Cores, policy and machines never see the agenda, and nothing here decides what they decide.

mod ending;
mod fate;
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

use crate::agenda::Agenda;
use crate::clients::Clients;
use crate::digest::Digest;
use crate::failure::{Failure, FailureKind, guarded};
use crate::gangs::Gangs;
use crate::happening::{AtDaemon, AtHead, Happening};
use crate::head::HeadHost;
use crate::link::Link;
use crate::machine::Machine;
use crate::node::Node;
use crate::plant::Plant;
use crate::random::Random;
use crate::recorder::{Keep, Recorder};
use crate::reference::Reference;
use crate::scenario::{Scenario, Watch};
use crate::shell::Shell;

/// How often somebody looks whether everything has ended.
const TIDY_EVERY: Span = Span::from_secs(600);

/// A cluster.
pub(crate) struct World<'s> {
    now: Time,
    agenda: Agenda<Happening>,
    head: HeadHost,
    nodes: Vec<Node>,
    /// By number.
    links: Vec<Link>,
    clients: Clients,
    reference: Reference,
    shell: &'s mut dyn Shell,
    gangs: Gangs,
    /// Work that jobs left to do and saved the rest of, on a disk that all machines share.
    saved: BTreeMap<JobId, f64>,
    delays: Random,
    planning: Random,
    commits: Random,
    breaks: Random,
    gpus: Random,
    settings: Settings,
    plant: Option<Plant>,
    machines_set_up: u128,
    finished: bool,
    pub(crate) tally: Tally,
    pub(crate) digest: Digest,
    pub(crate) recorder: Recorder,
}

struct Settings {
    delay: (Span, Span),
    planning: (Span, Span),
    planning_limit: Span,
    commit: (Span, Span),
    quiet_at: Time,
    gives_up_at: Time,
    retention: Span,
    watch: Watch,
}

/// What was counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
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
    pub(crate) fn new(seed: u64, scenario: Scenario, keep: Keep, shell: &'s mut dyn Shell) -> World<'s> {
        let head = HeadHost::new(&scenario);
        let mut world = World {
            now: Time::EPOCH,
            agenda: Agenda::new(),
            head,
            nodes: Vec::new(),
            links: Vec::new(),
            clients: Clients::new(scenario.submissions),
            reference: Reference::new(scenario.config.clone()),
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
                gives_up_at: scenario.quiet_at + scenario.patience,
                retention: scenario.config.retention,
                watch: scenario.watch,
            },
            plant: scenario.plant,
            machines_set_up: 0,
            finished: false,
            tally: Tally::default(),
            digest: Digest::new(),
            recorder: Recorder::new(keep),
        };
        world.agenda.put(Time::EPOCH, Happening::HeadBack);
        for shape in scenario.shapes {
            let machine = Machine::new(shape, scenario.hardware.clone(), scenario.orphan_grace);
            let id = world.new_node_id();
            let announced = scenario.announced_grace.unwrap_or(scenario.orphan_grace);
            world.nodes.push(Node::new(id, machine, scenario.heartbeat, announced));
            world.agenda.put(Time::EPOCH, Happening::DaemonBack(world.nodes.len() - 1, 0));
        }
        for (at, act) in scenario.acts {
            world.agenda.put(at, Happening::Act(act));
        }
        match scenario.watch {
            Watch::Everything => {
                world.agenda.put(scenario.quiet_at, Happening::Quiet);
                world.agenda.put(scenario.quiet_at, Happening::Tidy);
            }
            Watch::Outcomes => world.agenda.put(world.settings.gives_up_at, Happening::Tidy),
        }
        world
    }
}

impl World<'_> {
    /// Lets everything happen until all has ended.
    pub(crate) fn run(&mut self) -> Result<(), Failure> {
        while !self.finished {
            let Some((at, what)) = self.agenda.next() else {
                return Err(self.failure(FailureKind::NeverEnded, "nothing happens any more".into()));
            };
            self.now = at;
            guarded(FailureKind::Crash, at, || self.happen(what))??;
        }
        match self.settings.watch {
            Watch::Everything => self.verify(),
            Watch::Outcomes => Ok(()),
        }
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// What happened, as far as it was kept.
    pub(crate) fn into_trace(self) -> Vec<String> {
        self.recorder.into_lines()
    }

    fn happen(&mut self, what: Happening) -> Result<(), Failure> {
        match what {
            Happening::Act(act) => self.act(act),
            Happening::Head(life, at_head) if self.head.is_up() && self.head.life == life => {
                self.at_head(at_head)
            }
            Happening::Daemon(node, life, at_daemon) if self.is_alive(node, life) => {
                self.at_daemon(node, at_daemon)
            }
            Happening::Head(..) | Happening::Daemon(..) => Ok(()),
            Happening::Machine(node, pulse) => self.at_machine(node, pulse),
            Happening::PowerOn(node) => self.power_on(node),
            Happening::HeadBack => self.head_back(),
            Happening::DaemonBack(node, life) => self.daemon_back(node, life),
            Happening::Arrival(link, message) => self.arrival(link, message),
            Happening::Broken(link, side) => self.broken(link, side),
            Happening::Request(client, by, request) => self.request(client, by, request),
            Happening::Reply(client, reply) => self.reply(client, reply),
            Happening::Impatience(index) => {
                self.submit(index);
                Ok(())
            }
            Happening::Quiet => self.quiet(),
            Happening::Tidy => self.tidy(),
        }
    }

    fn at_head(&mut self, what: AtHead) -> Result<(), Failure> {
        match what {
            AtHead::Alarm(setting) if self.head.alarm.rings(setting) => self.head_event(Event::Alarm),
            AtHead::Alarm(_) => Ok(()),
            AtHead::Written => self.journal_written(),
            AtHead::Planned(ticket, plan) => self.head_event(Event::Planned(ticket, plan)),
            AtHead::OutOfTime(ticket) => {
                let plan = self.head.fall_back(self.head_now());
                self.head_event(Event::Planned(ticket, plan))
            }
            AtHead::Relabelled(key, report) => self.head_event(Event::Report(key, report)),
            AtHead::Closed(key) => self.head_event(Event::Lost(key, "the head closed the link".into())),
        }
    }

    fn at_daemon(&mut self, node: usize, what: AtDaemon) -> Result<(), Failure> {
        match what {
            AtDaemon::Alarm(setting) => self.daemon_alarm(node, setting),
            AtDaemon::Dial => self.dial(node, Span::ZERO),
            AtDaemon::GiveUp(link) => self.give_up(node, link),
            AtDaemon::Redial { times, lag } => self.redial(node, times, lag),
            AtDaemon::Mps(device, order, luck) => self.mps_answers(node, device, order, luck),
            AtDaemon::Forget(rank) => {
                self.nodes[node].machine.forget(rank);
                Ok(())
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.now >= self.settings.quiet_at
    }

    /// Puts down something that happens when a message has travelled.
    fn after_travel(&mut self, what: Happening) {
        let delay = self.delays.span(self.settings.delay);
        self.agenda.put(self.now + delay, what);
    }

    /// Two runs of one seed are compared by what is taken in here.
    fn happened(&mut self, what: &impl std::fmt::Debug) {
        match self.settings.watch {
            Watch::Everything => self.digest.happened(self.now, what),
            Watch::Outcomes => {}
        }
    }

    const fn new_node_id(&mut self) -> NodeId {
        self.machines_set_up += 1;
        NodeId(uuid::Uuid::from_u128(self.machines_set_up))
    }

    const fn failure(&self, kind: FailureKind, detail: String) -> Failure {
        Failure { kind, at: self.now, detail }
    }

    /// Checks that look at much of the cluster; an evaluation has no time for them.
    fn check(&self, check: impl FnOnce() -> Result<(), String>) -> Result<(), Failure> {
        match self.settings.watch {
            Watch::Everything => self.invariant(check()),
            Watch::Outcomes => Ok(()),
        }
    }

    fn invariant(&self, held: Result<(), String>) -> Result<(), Failure> {
        held.map_err(|detail| self.failure(FailureKind::Invariant, detail))
    }
}
