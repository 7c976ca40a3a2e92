//! One node: its link, and the ledger of what its jobs hold.
//!
//! A placed attempt holds its part of a node until its last rank has ended or was given up; the ledger is the
//! only record of what is free.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::{DeviceView, NodeView, SharingMode, SharingTerms};
use cohabit_types::{
    Bytes, Condition, Demand, Device, DeviceId, DeviceRecord, DeviceSharing, DeviceTelemetry, Health,
    Inventory, Isolation, JobId, LinkBandwidths, NodeId, NodeRecord, NodeState, RankPlacement, Share,
    SharingLimits, Span, Time, WorkerKey,
};
use serde::{Deserialize, Serialize};

use crate::trouble::NodeProblem;

/// What the devices of all nodes last showed.
pub(crate) type Telemetry = BTreeMap<(NodeId, DeviceId), DeviceTelemetry>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Its place in the order of nodes.
    pub(crate) ordinal: u64,
    pub(crate) address: String,
    pub(crate) build: String,
    pub(crate) cpus: u32,
    pub(crate) memory: Bytes,
    #[serde(default)]
    pub(crate) links: LinkBandwidths,
    #[serde(default)]
    pub(crate) sharing: SharingLimits,
    #[serde(default)]
    pub(crate) isolation: Isolation,
    /// Where ranks on it may wait for others.
    #[serde(default)]
    pub(crate) rendezvous_ports: Vec<u16>,
    /// Those of them that another program turned out to use.
    #[serde(default)]
    pub(crate) taken_ports: BTreeSet<u16>,
    /// How long its ranks go on while the head cannot be reached.
    pub(crate) orphan_grace: Span,
    pub(crate) link: LinkState,
    pub(crate) intake: Intake,
    /// Why ranks do not start on it, until one does.
    #[serde(default)]
    pub(crate) trouble: Option<NodeProblem>,
    /// When the link last changed.
    pub(crate) since: Time,
    pub(crate) cpus_used: u32,
    pub(crate) memory_used: Bytes,
    pub(crate) devices: Vec<DeviceUse>,
    /// Jobs whose live attempt has a part here.
    pub(crate) jobs: BTreeSet<JobId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LinkState {
    Up(WorkerKey),
    /// Broken; the key is the last one, to tell newer links from older.
    Broken(WorkerKey),
    /// Broken for so long that its attempts were given up.
    Lost(WorkerKey),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Intake {
    Open,
    /// Drained: no new jobs.
    Closed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceUse {
    pub(crate) device: Device,
    pub(crate) used: Share,
    pub(crate) memory_used: Bytes,
    /// Its co-location set.
    pub(crate) residents: BTreeSet<JobId>,
}

impl Node {
    pub(crate) fn new(name: String, ordinal: u64, key: WorkerKey, inventory: &Inventory, now: Time) -> Node {
        let mut node = Node {
            name,
            ordinal,
            address: String::new(),
            build: String::new(),
            cpus: 0,
            memory: Bytes::ZERO,
            links: LinkBandwidths::default(),
            sharing: SharingLimits::default(),
            isolation: Isolation::default(),
            rendezvous_ports: Vec::new(),
            taken_ports: BTreeSet::new(),
            orphan_grace: Span::ZERO,
            link: LinkState::Up(key),
            intake: Intake::Open,
            trouble: None,
            since: now,
            cpus_used: 0,
            memory_used: Bytes::ZERO,
            devices: Vec::new(),
            jobs: BTreeSet::new(),
        };
        node.learn(inventory);
        node
    }

    /// Takes over what the worker says of its machine; what jobs hold of known devices stays booked.
    pub(crate) fn learn(&mut self, inventory: &Inventory) {
        self.address.clone_from(&inventory.address);
        self.build.clone_from(&inventory.build);
        self.cpus = inventory.cpus;
        self.memory = inventory.memory;
        self.links = inventory.links;
        self.sharing = inventory.sharing;
        self.isolation.clone_from(&inventory.isolation);
        self.rendezvous_ports.clone_from(&inventory.rendezvous_ports);
        self.taken_ports.clear();
        self.orphan_grace = inventory.orphan_grace;
        let old = std::mem::take(&mut self.devices);
        let booked = |device: &Device| match old.iter().find(|known| known.device.id == device.id) {
            Some(known) => DeviceUse { device: device.clone(), ..known.clone() },
            None => DeviceUse {
                device: device.clone(),
                used: Share::default(),
                memory_used: Bytes::ZERO,
                residents: BTreeSet::new(),
            },
        };
        self.devices = inventory.devices.iter().map(booked).collect();
    }

    /// Takes over how a device is now; whether it is anything new.
    pub(crate) fn set_condition(&mut self, id: &DeviceId, condition: Condition) -> bool {
        let device = self.devices.iter_mut().find(|it| it.device.id == *id);
        device.is_some_and(|it| std::mem::replace(&mut it.device.condition, condition.clone()) != condition)
    }

    /// The link, while there is one.
    pub(crate) fn key(&self) -> Option<WorkerKey> {
        match self.link {
            LinkState::Up(key) => Some(key),
            LinkState::Broken(_) | LinkState::Lost(_) => None,
        }
    }

    /// The newest link there ever was.
    pub(crate) fn last_key(&self) -> WorkerKey {
        match self.link {
            LinkState::Up(key) | LinkState::Broken(key) | LinkState::Lost(key) => key,
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.link, LinkState::Lost(_))
    }

    pub(crate) fn takes_jobs(&self) -> bool {
        self.key().is_some() && self.intake == Intake::Open && !self.is_paused()
    }

    /// Whether it had no room, and is left alone for a while.
    pub(crate) fn is_paused(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.paused_until.is_some())
    }

    pub(crate) fn take(&mut self, job: JobId, demand: &Demand, part: &RankPlacement) {
        self.jobs.insert(job);
        self.cpus_used += demand.cpus;
        self.memory_used = self.memory_used + demand.memory;
        for device in self.devices.iter_mut().filter(|it| part.devices.contains(&it.device.id)) {
            device.used += part.share;
            device.memory_used = device.memory_used + demand.gpu_memory.unwrap_or_default();
            device.residents.insert(job);
        }
    }

    pub(crate) fn release(&mut self, job: JobId, demand: &Demand, part: &RankPlacement) {
        if !self.jobs.remove(&job) {
            return;
        }
        self.cpus_used = self.cpus_used.saturating_sub(demand.cpus);
        self.memory_used = self.memory_used.saturating_sub(demand.memory);
        for device in self.devices.iter_mut().filter(|it| part.devices.contains(&it.device.id)) {
            if device.residents.remove(&job) {
                device.used = device.used.saturating_sub(part.share);
                device.memory_used = device.memory_used.saturating_sub(demand.gpu_memory.unwrap_or_default());
            }
        }
    }

    pub(crate) fn view(&self, id: NodeId) -> NodeView {
        NodeView {
            id,
            ordinal: self.ordinal,
            name: self.name.clone(),
            cpus: self.cpus,
            cpus_free: self.cpus.saturating_sub(self.cpus_used),
            memory: self.memory,
            memory_free: self.memory.saturating_sub(self.memory_used),
            links: self.links,
            devices: self.devices.iter().map(|device| device.view(self.sharing)).collect(),
        }
    }

    pub(crate) fn state(&self) -> NodeState {
        match (self.link, self.intake) {
            (LinkState::Up(_), Intake::Open) if self.is_paused() => NodeState::Paused,
            (LinkState::Up(_), Intake::Open) => NodeState::Up,
            (LinkState::Up(_), Intake::Closed) if self.jobs.is_empty() => NodeState::Drained,
            (LinkState::Up(_), Intake::Closed) => NodeState::Draining,
            (LinkState::Broken(_), _) => NodeState::Unreachable,
            (LinkState::Lost(_), _) => NodeState::Lost,
        }
    }

    pub(crate) fn record(&self, id: NodeId, telemetry: &Telemetry) -> NodeRecord {
        let device = |it: &DeviceUse| DeviceRecord {
            device: it.device.clone(),
            used: it.used,
            memory_used: it.memory_used,
            jobs: it.residents.iter().copied().collect(),
            telemetry: telemetry.get(&(id, it.device.id.clone())).cloned(),
        };
        NodeRecord {
            id,
            name: self.name.clone(),
            state: self.state(),
            trouble: self.trouble.as_ref().map(|trouble| trouble.what.clone()),
            address: self.address.clone(),
            build: self.build.clone(),
            cpus: self.cpus,
            cpus_used: self.cpus_used,
            memory: self.memory,
            memory_used: self.memory_used,
            links: self.links,
            sharing: self.sharing,
            isolation: self.isolation.clone(),
            devices: self.devices.iter().map(device).collect(),
            jobs: self.jobs.iter().copied().collect(),
            since: self.since,
        }
    }
}

impl DeviceUse {
    fn view(&self, limits: SharingLimits) -> DeviceView {
        let Condition { health, sharing, foreign_memory } = &self.device.condition;
        // What has no memory of its own is no GPU, real or made up: only shares limit its ranks.
        let is_limited = self.device.memory.is_some();
        let places = limits.max_ranks.saturating_sub(self.residents.len() as u32);
        DeviceView {
            id: self.device.id.clone(),
            kind: self.device.kind,
            model: self.device.model.clone(),
            free: Share::WHOLE.saturating_sub(self.used),
            memory: self.device.memory,
            memory_free: self
                .device
                .memory
                .map(|memory| memory.saturating_sub(self.memory_used + *foreign_memory)),
            residents: self.residents.iter().copied().collect(),
            intake: match health {
                Health::Well => cohabit_policy::DeviceAvailability::Open,
                Health::Recovering(_) => cohabit_policy::DeviceAvailability::Recovering,
                Health::Fenced(_) => cohabit_policy::DeviceAvailability::Closed,
            },
            sharing: SharingTerms {
                mode: match sharing {
                    DeviceSharing::Enforced => SharingMode::Enforced,
                    DeviceSharing::Unenforced(_) => SharingMode::Unenforced,
                    DeviceSharing::Alone(_) => SharingMode::Exclusive,
                },
                ranks_free: is_limited.then_some(places),
                reserve: if is_limited { limits.reserve } else { Bytes::ZERO },
            },
            foreign_memory: *foreign_memory,
            peers: self.device.gpu.as_ref().map(|gpu| gpu.peers.clone()).unwrap_or_default(),
        }
    }
}
