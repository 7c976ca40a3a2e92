//! A node: a machine, the worker daemon on it, and what the two keep across their deaths.
//!
//! The daemon is the production worker core with a link and an alarm clock. It is gone at a crash; the
//! machine's executors, the node's id and the number of its links are not.

use std::collections::BTreeMap;

use cohabit_types::{
    DeviceId, DeviceKind, DeviceSharing, Health, Incarnation, Inventory, Isolation, NodeId, Span, Time,
    WorkerKey,
};
use cohabit_worker_core::{Config, MpsOrder, Worker, WorkerEffect, WorkerEvent};

use crate::alarm::AlarmClock;
use crate::failure::{FailureKind, SimFailure, guarded};
use crate::machine::Machine;
use crate::scenario::CheckLevel;
use crate::sim_event::LinkId;

/// A node.
#[derive(Debug)]
pub(crate) struct SimNode {
    pub(crate) id: NodeId,
    pub(crate) machine: Machine,
    pub(crate) power: Power,
    pub(crate) daemon: Option<Daemon>,
    /// Counts the lives of its daemon; what belongs to an earlier one is void.
    pub(crate) life: u64,
    /// No link can be made before.
    pub(crate) cut_until: Time,
    incarnation: u64,
    heartbeat: Span,
    /// What it tells the head of its executors' grace.
    announced_grace: Span,
}

/// Whether the machine is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    On,
    /// It will come back by itself.
    Off,
    /// It will not.
    Gone,
}

/// A worker daemon that runs.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) worker: Worker,
    pub(crate) link: Link,
    pub(crate) alarm: AlarmClock,
    /// The latest time that the core was given; it never runs back, whatever the machine's clock does.
    pub(crate) now: Time,
    /// What the actors of MPS daemons were told and have not answered.
    pub(crate) orders: BTreeMap<DeviceId, MpsOrder>,
}

/// The daemon's link to the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    None,
    /// The greeting is on its way.
    Handshaking(LinkId),
    Established(LinkId),
}

impl Link {
    pub(crate) const fn id(self) -> Option<LinkId> {
        match self {
            Link::None => None,
            Link::Handshaking(id) | Link::Established(id) => Some(id),
        }
    }
}

impl SimNode {
    pub(crate) const fn new(id: NodeId, machine: Machine, heartbeat: Span, announced_grace: Span) -> SimNode {
        SimNode {
            id,
            machine,
            power: Power::On,
            daemon: None,
            life: 0,
            cut_until: Time::EPOCH,
            incarnation: 0,
            heartbeat,
            announced_grace,
        }
    }

    /// The machine was set up anew.
    pub(crate) const fn rename(&mut self, id: NodeId) {
        self.id = id;
        self.incarnation = 0;
    }

    /// A new daemon, before it has looked around.
    pub(crate) fn start_daemon(&mut self) {
        self.machine.restart_lost_gpus();
        let devices = self.machine.shape().devices();
        let worker = Worker::new(Config { heartbeat: self.heartbeat, devices });
        self.life += 1;
        let (link, alarm, orders) = (Link::None, AlarmClock::default(), BTreeMap::new());
        self.daemon = Some(Daemon { worker, link, alarm, now: Time::EPOCH, orders });
    }

    /// The key of its next link.
    pub(crate) fn next_key(&mut self) -> WorkerKey {
        self.incarnation += 1;
        WorkerKey { node: self.id, incarnation: Incarnation(self.incarnation) }
    }

    /// What it says of itself; nothing while no daemon runs.
    pub(crate) fn inventory(&mut self) -> Option<Inventory> {
        let (daemon, shape) = (self.daemon.as_mut()?, self.machine.shape());
        Some(Inventory {
            name: shape.name.clone(),
            address: shape.address(),
            cpus: shape.cpus,
            memory: shape.memory,
            devices: daemon.worker.devices(),
            build: "simulated".into(),
            links: shape.links,
            sharing: shape.sharing,
            rendezvous_ports: shape.rendezvous_ports(),
            isolation: Isolation::default(),
            orphan_grace: self.announced_grace,
            held: daemon.worker.held(),
        })
    }
}

impl SimNode {
    /// Whether somebody has to look after GPUs that MPS served when its daemon started.
    pub(crate) fn needs_care(&self) -> bool {
        let devices = self.daemon.as_ref().map(|daemon| daemon.worker.clone().devices()).unwrap_or_default();
        let real = devices.into_iter().filter(|device| device.kind == DeviceKind::Gpu);
        real.map(|device| device.condition).any(|now| {
            matches!(now.health, Health::Fenced(_)) || matches!(now.sharing, DeviceSharing::Unenforced(_))
        })
    }

    /// What has not come to its end here.
    pub(crate) fn unfinished(&self) -> Option<String> {
        let name = &self.machine.shape().name;
        let Some(daemon) = &self.daemon else { return Some(format!("no daemon runs on {name}")) };
        let left = !self.machine.is_clean() || !daemon.worker.held().is_empty();
        left.then(|| format!("{name} holds {:?}", daemon.worker.held()))
    }
}

impl Daemon {
    /// Whether this order waits for its answer; it does not from now on.
    pub(crate) fn takes_answer(&mut self, device: &DeviceId, order: MpsOrder) -> bool {
        self.orders.get(device) == Some(&order) && self.orders.remove(device).is_some()
    }

    /// Something happens, when the machine's clock shows this.
    pub(crate) fn handle(
        &mut self,
        wall: Time,
        event: WorkerEvent,
        watch: CheckLevel,
    ) -> Result<Vec<WorkerEffect>, SimFailure> {
        self.now = self.now.max(wall);
        let (now, mut effects) = (self.now, Vec::new());
        guarded(FailureKind::Crash, now, || self.worker.handle(now, event, &mut effects))?;
        match watch {
            CheckLevel::Everything => guarded(FailureKind::Invariant, now, || self.worker.check())?,
            CheckLevel::Outcomes => {}
        }
        Ok(effects)
    }
}
