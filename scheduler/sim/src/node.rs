//! A node: a machine with its worker daemon, and what outlives a crash of either.
//!
//! The daemon is the production worker core with a link and a timer. A crash loses it; the executors of the
//! machine, the id of the node and the count of its links remain.

use std::collections::BTreeMap;

use cohabit_types::{
    AttemptId, DeviceId, DeviceKind, DeviceSharing, Health, Incarnation, Inventory, Isolation, JobId, NodeId,
    RankId, Span, Time, WorkerKey,
};
use cohabit_worker_core::{Config, MpsOrder, Worker, WorkerEffect, WorkerEvent};

use crate::alarm::AlarmClock;
use crate::failure::{FailureKind, SimFailure, guarded};
use crate::machine::SimMachine;
use crate::scenario::CheckLevel;
use crate::sim_event::{LinkId, SimEvent};

/// A node.
#[derive(Debug)]
pub(crate) struct SimNode {
    pub(crate) id: NodeId,
    pub(crate) machine: SimMachine,
    pub(crate) power: Power,
    pub(crate) daemon: Option<Daemon>,
    /// Counts the starts of the daemon. Events of an earlier generation are ignored.
    pub(crate) generation: u64,
    /// What is suspended there, if anything.
    pub(crate) halt: Option<Halt>,
    /// Counts the suspensions.
    pub(crate) halts: u64,
    /// When the last of them ended.
    pub(crate) last_halt_at: Time,
    /// What has happened to whatever is suspended, and is noticed later.
    pub(crate) stalled: Vec<SimEvent>,
    /// When the daemon last noticed that its link had ended, was started, or went on.
    pub(crate) noticed_at: Time,
    /// No link can be opened before this time.
    pub(crate) cut_until: Time,
    /// The processor time that each rank there has taken, as long as all take as much.
    pub(crate) processor_time: Span,
    incarnation: u64,
    heartbeat: Span,
    /// The orphan grace that the node reports to the head.
    announced_grace: Span,
}

/// Whether the machine is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    On,
    /// Off; it will be switched on again.
    Off,
    /// Off until it is replaced in the quiet phase.
    Gone,
}

/// What is suspended on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Daemon,
    /// Everything, because the machine is paused.
    Machine,
}

/// A running worker daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) worker: Worker,
    pub(crate) link: DaemonLink,
    pub(crate) alarm: AlarmClock,
    /// The latest time given to the core. It never runs backwards, whatever the machine's clock does.
    pub(crate) now: Time,
    /// Orders to MPS actors that have not been answered.
    pub(crate) orders: BTreeMap<DeviceId, MpsOrder>,
    /// Code that is being fetched.
    pub(crate) fetches: BTreeMap<AttemptId, CodeFetch>,
}

/// Code that is being fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeFetch {
    /// The job whose rank needs it.
    pub(crate) job: JobId,
    /// Over which link.
    pub(crate) link: Option<LinkId>,
    /// Whether nobody waits for it any more.
    pub(crate) is_abandoned: bool,
}

/// The link of the daemon to the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonLink {
    None,
    /// The hello was sent and not yet accepted.
    Handshaking(LinkId),
    Established(LinkId),
}

impl DaemonLink {
    pub(crate) const fn id(self) -> Option<LinkId> {
        match self {
            DaemonLink::None => None,
            DaemonLink::Handshaking(id) | DaemonLink::Established(id) => Some(id),
        }
    }
}

impl SimNode {
    pub(crate) const fn new(
        id: NodeId,
        machine: SimMachine,
        heartbeat: Span,
        announced_grace: Span,
    ) -> SimNode {
        SimNode {
            id,
            machine,
            power: Power::On,
            daemon: None,
            generation: 0,
            halt: None,
            halts: 0,
            last_halt_at: Time::EPOCH,
            stalled: Vec::new(),
            processor_time: Span::ZERO,
            noticed_at: Time::EPOCH,
            cut_until: Time::EPOCH,
            incarnation: 0,
            heartbeat,
            announced_grace,
        }
    }

    /// Gives the machine a new id after it was installed anew.
    pub(crate) const fn reinstall(&mut self, id: NodeId) {
        self.id = id;
        self.incarnation = 0;
    }

    /// Starts a new daemon that has not yet scanned the machine.
    pub(crate) fn start_daemon(&mut self) {
        self.machine.restart_lost_gpus();
        let devices = self.machine.shape().devices();
        let worker = Worker::new(Config { heartbeat: self.heartbeat, devices });
        self.generation += 1;
        let (link, alarm, orders, fetches) =
            (DaemonLink::None, AlarmClock::default(), BTreeMap::new(), BTreeMap::new());
        self.daemon = Some(Daemon { worker, link, alarm, now: Time::EPOCH, orders, fetches });
    }

    /// The key of the next link.
    pub(crate) fn next_key(&mut self) -> WorkerKey {
        self.incarnation += 1;
        WorkerKey { node: self.id, incarnation: Incarnation(self.incarnation) }
    }

    /// What the node reports in its hello; `None` while no daemon runs.
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
            max_jobs: None,
            rendezvous_ports: shape.rendezvous_ports(),
            isolation: Isolation::default(),
            fetches_code: true,
            prefetches: true,
            application_ports: true,
            changes_host_shares: true,
            orphan_grace: self.announced_grace,
            held_ranks: daemon.worker.held(),
        })
    }
}

impl SimNode {
    /// Whether an administrator has to repair GPUs that were usable when the daemon started.
    pub(crate) fn needs_repair(&self) -> bool {
        let devices = self.daemon.as_ref().map(|daemon| daemon.worker.clone().devices()).unwrap_or_default();
        let real = devices.into_iter().filter(|device| device.kind == DeviceKind::Gpu);
        real.map(|device| device.condition).any(|now| {
            matches!(now.health, Health::Fenced(_)) || matches!(now.sharing, DeviceSharing::Unenforced(_))
        })
    }

    /// Whether its daemon knows this rank, living or ended.
    pub(crate) fn holds(&self, rank: RankId) -> bool {
        self.daemon.as_ref().is_some_and(|it| it.worker.held().iter().any(|held| held.rank == rank))
    }

    /// Describes what has not ended on this node.
    pub(crate) fn describe_unfinished(&self) -> Option<String> {
        let name = &self.machine.shape().name;
        let Some(daemon) = &self.daemon else { return Some(format!("no daemon runs on {name}")) };
        let left = !self.machine.is_clean() || !daemon.worker.held().is_empty();
        left.then(|| format!("{name} holds {:?}", daemon.worker.held()))
    }
}

impl Daemon {
    /// Whether this order is pending; it is answered now.
    pub(crate) fn take_pending_order(&mut self, device: &DeviceId, order: &MpsOrder) -> bool {
        self.orders.get(device) == Some(order) && self.orders.remove(device).is_some()
    }

    /// Handles an event. `wall` is the time of the machine's clock.
    pub(crate) fn handle(
        &mut self,
        wall: Time,
        event: WorkerEvent,
        check_level: CheckLevel,
    ) -> Result<Vec<WorkerEffect>, SimFailure> {
        self.now = self.now.max(wall);
        let (now, mut effects) = (self.now, Vec::new());
        guarded(FailureKind::Crash, now, || self.worker.handle(now, event, &mut effects))?;
        match check_level {
            CheckLevel::Everything => guarded(FailureKind::Invariant, now, || self.worker.check())?,
            CheckLevel::Outcomes => {}
        }
        Ok(effects)
    }
}
