//! One node: its link to the head, and the ledger of what jobs hold on it.
//!
//! A live attempt holds its part of a node until its last rank has ended or was given up. The ledger is the
//! only record of what is free.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::{DeviceView, NodeView, SharingMode, SharingTerms, SharingUsers};
use cohabit_types::{
    Bytes, Condition, Demand, Device, DeviceId, DeviceRecord, DeviceSharing, Enforcement, Health, HostShare,
    Inventory, Isolation, JobId, LinkBandwidths, NodeDrain, NodeId, NodeRecord, NodeState, RankPlacement,
    Share, SharingLimits, Span, Time, UserIsolation, WorkerKey,
};

use crate::volatile::Telemetry;

/// A node that joined, whether it is linked now or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name; no two nodes have the same.
    pub name: String,
    /// Its place in the order in which nodes joined.
    pub ordinal: u64,
    /// The address at which other nodes reach it.
    pub address: String,
    /// The build of its worker.
    pub build: String,
    /// Its cores.
    pub cpus: u32,
    /// Its host memory.
    pub memory: Bytes,
    /// The bandwidths of its links.
    pub links: LinkBandwidths,
    /// What limits sharing of its devices.
    pub sharing: SharingLimits,
    /// How its worker isolates jobs.
    pub isolation: Isolation,
    /// Whether its worker can fetch snapshots of code.
    pub fetches_code: bool,
    /// Whether its worker takes attempts in advance.
    pub prefetches: bool,
    /// Whether its worker lets applications listen at its ports.
    pub application_ports: bool,
    /// Whether its worker can change the cores and the host memory of a running job.
    pub changes_host_shares: bool,
    /// The most jobs that it runs at once; `None` if its worker does not say.
    pub max_jobs: Option<u32>,
    /// The ports that its worker keeps for rendezvous.
    pub rendezvous_ports: Vec<u16>,
    /// Those of them that turned out to be used by another program.
    pub occupied_ports: BTreeSet<u16>,
    /// How long its ranks go on while the head cannot be reached.
    pub orphan_grace: Span,
    /// Its link to the head.
    pub link: NodeLink,
    /// Whether it takes new jobs.
    pub schedulability: Schedulability,
    /// Who drained it and why, if that is known.
    pub drain: Option<NodeDrain>,
    /// Why ranks do not start on it, until one does.
    pub problem: Option<NodeProblem>,
    /// When the link last changed.
    pub link_changed_at: Time,
    /// Cores that jobs hold.
    pub cpus_used: u32,
    /// Host memory that jobs hold.
    pub memory_used: Bytes,
    /// Its devices.
    pub devices: Vec<DeviceUse>,
    /// Jobs whose live attempt has a part here.
    pub jobs: BTreeSet<JobId>,
}

/// The state of a node's link, with its last key: it tells newer links from older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeLink {
    /// The worker is connected.
    Up(WorkerKey),
    /// The link is broken; attempts on the node may still run.
    Unreachable(WorkerKey),
    /// It was broken for so long that the attempts on the node were given up.
    Lost(WorkerKey),
}

/// Whether an admin lets a node take new jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedulability {
    /// It takes new jobs.
    Open,
    /// It was drained and takes none.
    Drained,
}

/// A device, and what jobs hold of it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceUse {
    /// The device.
    pub device: Device,
    /// The shares that jobs hold, together.
    pub used: Share,
    /// The memory that jobs hold, together.
    pub memory_used: Bytes,
    /// The jobs on it: its co-location set.
    pub jobs: BTreeSet<JobId>,
}

/// Why a rank could not start on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProblem {
    /// What the worker said.
    pub message: String,
    /// How often in a row, since a rank last started there.
    pub count: u32,
    /// The node gets no jobs before this time; none if it is being tried again.
    pub paused_until: Option<Time>,
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
            fetches_code: false,
            prefetches: false,
            application_ports: false,
            changes_host_shares: false,
            max_jobs: None,
            rendezvous_ports: Vec::new(),
            occupied_ports: BTreeSet::new(),
            orphan_grace: Span::ZERO,
            link: NodeLink::Up(key),
            schedulability: Schedulability::Open,
            drain: None,
            problem: None,
            link_changed_at: now,
            cpus_used: 0,
            memory_used: Bytes::ZERO,
            devices: Vec::new(),
            jobs: BTreeSet::new(),
        };
        node.learn(inventory);
        node
    }

    /// Why its worker cannot change the cores and the host memory of running jobs, if it cannot.
    pub(crate) fn fixed_shares_reason(&self) -> Option<String> {
        if self.changes_host_shares {
            return None;
        }
        Some(match &self.isolation.host_limits {
            Enforcement::Unenforced(why) => format!("limits are not enforced on that node: {why}"),
            Enforcement::Enforced => {
                format!("the worker there (version {}) cannot change limits: upgrade it", self.build)
            }
        })
    }

    /// Takes over what the worker says about its machine. Known devices keep what jobs hold of them.
    pub(crate) fn learn(&mut self, inventory: &Inventory) {
        self.address.clone_from(&inventory.address);
        self.build.clone_from(&inventory.build);
        self.cpus = inventory.cpus;
        self.memory = inventory.memory;
        self.links = inventory.links;
        self.sharing = inventory.sharing;
        self.isolation.clone_from(&inventory.isolation);
        self.fetches_code = inventory.fetches_code;
        self.prefetches = inventory.prefetches;
        self.application_ports = inventory.application_ports;
        self.changes_host_shares = inventory.changes_host_shares;
        self.max_jobs = inventory.max_jobs;
        self.rendezvous_ports.clone_from(&inventory.rendezvous_ports);
        self.occupied_ports.clear();
        self.orphan_grace = inventory.orphan_grace;
        let old = std::mem::take(&mut self.devices).into_iter();
        let mut old: BTreeMap<DeviceId, DeviceUse> = old.map(|it| (it.device.id.clone(), it)).collect();
        let with_use = |device: &Device| match old.remove(&device.id) {
            Some(known) => DeviceUse { device: device.clone(), ..known },
            None => DeviceUse {
                device: device.clone(),
                used: Share::default(),
                memory_used: Bytes::ZERO,
                jobs: BTreeSet::new(),
            },
        };
        self.devices = inventory.devices.iter().map(with_use).collect();
    }

    /// Sets the condition of a device. Answers whether it changed.
    pub(crate) fn set_condition(&mut self, id: &DeviceId, condition: Condition) -> bool {
        let device = self.devices.iter_mut().find(|it| it.device.id == *id);
        device.is_some_and(|it| std::mem::replace(&mut it.device.condition, condition.clone()) != condition)
    }

    /// The key of the link while it is up.
    pub(crate) fn key(&self) -> Option<WorkerKey> {
        match self.link {
            NodeLink::Up(key) => Some(key),
            NodeLink::Unreachable(_) | NodeLink::Lost(_) => None,
        }
    }

    /// The key of the newest link, whether it is up or not.
    pub(crate) fn last_key(&self) -> WorkerKey {
        match self.link {
            NodeLink::Up(key) | NodeLink::Unreachable(key) | NodeLink::Lost(key) => key,
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.link, NodeLink::Lost(_))
    }

    pub(crate) fn takes_jobs(&self) -> bool {
        self.key().is_some() && self.schedulability == Schedulability::Open && !self.is_paused()
    }

    /// The account that its worker serves alone.
    pub(crate) fn account(&self) -> Option<&str> {
        match &self.isolation.users {
            UserIsolation::OneAccount(account) => Some(account),
            UserIsolation::Together | UserIsolation::Apart => None,
        }
    }

    /// That account, and whether a device of it serves one user at a time.
    pub(crate) fn served_users(&self) -> (Option<&str>, bool) {
        let is_of_one_user =
            |it: &DeviceUse| matches!(it.device.condition.sharing, DeviceSharing::OneUser(_));
        (self.account(), self.devices.iter().any(is_of_one_user))
    }

    /// Whether it runs jobs of this account.
    pub(crate) fn serves(&self, account: &str) -> bool {
        self.account().is_none_or(|own| own == account)
    }

    /// Whether applications may listen on it for their processes on other nodes.
    pub(crate) fn has_application_ports(&self) -> bool {
        self.application_ports && !self.rendezvous_ports.is_empty()
    }

    /// Whether it gets no jobs for a while because a rank could not start there.
    pub(crate) fn is_paused(&self) -> bool {
        self.problem.as_ref().is_some_and(|problem| problem.paused_until.is_some())
    }

    pub(crate) fn take(&mut self, job: JobId, demand: &Demand, part: &RankPlacement) {
        self.jobs.insert(job);
        self.hold(part.host_share(demand));
        for device in self.devices.iter_mut().filter(|it| part.devices.contains(&it.device.id)) {
            device.used += part.share;
            device.memory_used = device.memory_used + demand.gpu_memory.unwrap_or_default();
            device.jobs.insert(job);
        }
    }

    pub(crate) fn release(&mut self, job: JobId, demand: &Demand, part: &RankPlacement) {
        if !self.jobs.remove(&job) {
            return;
        }
        self.give_back(part.host_share(demand));
        for device in self.devices.iter_mut().filter(|it| part.devices.contains(&it.device.id)) {
            if device.jobs.remove(&job) {
                device.used = device.used.saturating_sub(part.share);
                device.memory_used = device.memory_used.saturating_sub(demand.gpu_memory.unwrap_or_default());
            }
        }
    }

    /// Jobs hold so much more of its cores and its host memory.
    pub(crate) fn hold(&mut self, share: HostShare) {
        self.cpus_used = self.cpus_used.saturating_add(share.cpus);
        self.memory_used = self.memory_used + share.memory;
    }

    /// Jobs hold so much less of them.
    pub(crate) fn give_back(&mut self, share: HostShare) {
        self.cpus_used = self.cpus_used.saturating_sub(share.cpus);
        self.memory_used = self.memory_used.saturating_sub(share.memory);
    }

    /// The cores and the host memory that no job holds.
    pub(crate) const fn host_free(&self) -> HostShare {
        HostShare {
            cpus: self.cpus.saturating_sub(self.cpus_used),
            memory: self.memory.saturating_sub(self.memory_used),
        }
    }

    /// What a policy sees of it; its owner is added by `Head::node_view`.
    pub(crate) fn view(&self, id: NodeId) -> NodeView {
        let free = self.host_free();
        NodeView {
            id,
            ordinal: self.ordinal,
            name: self.name.clone(),
            cpus: self.cpus,
            cpus_free: free.cpus,
            memory: self.memory,
            memory_free: free.memory,
            max_jobs: self.max_jobs,
            jobs: self.jobs.len() as u32,
            links: self.links,
            owner: None,
            windows: Vec::new(),
            fetches_code: self.fetches_code,
            application_ports: self.has_application_ports(),
            changes_host_shares: self.changes_host_shares,
            devices: self.devices.iter().map(|device| device.view(self.sharing)).collect(),
        }
    }

    pub(crate) fn state(&self) -> NodeState {
        match (self.link, self.schedulability) {
            (NodeLink::Up(_), Schedulability::Open) if self.is_paused() => NodeState::Paused,
            (NodeLink::Up(_), Schedulability::Open) => NodeState::Up,
            (NodeLink::Up(_), Schedulability::Drained) if self.jobs.is_empty() => NodeState::Drained,
            (NodeLink::Up(_), Schedulability::Drained) => NodeState::Draining,
            (NodeLink::Unreachable(_), _) => NodeState::Unreachable,
            (NodeLink::Lost(_), _) => NodeState::Lost,
        }
    }

    pub(crate) fn record(&self, id: NodeId, telemetry: &Telemetry) -> NodeRecord {
        let device = |it: &DeviceUse| DeviceRecord {
            device: it.device.clone(),
            used: it.used,
            memory_used: it.memory_used,
            jobs: it.jobs.iter().copied().collect(),
            telemetry: telemetry.get(&(id, it.device.id.clone())).cloned(),
        };
        NodeRecord {
            id,
            name: self.name.clone(),
            state: self.state(),
            problem: self.problem.as_ref().map(|problem| problem.message.clone()),
            drain: self.drain.clone(),
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
            since: self.link_changed_at,
        }
    }
}

impl DeviceUse {
    fn view(&self, limits: SharingLimits) -> DeviceView {
        let Condition { health, sharing, foreign_memory } = &self.device.condition;
        // A device without memory of its own is no GPU, real or simulated: only shares limit its ranks.
        let is_limited = self.device.memory.is_some();
        let places = limits.max_ranks.saturating_sub(self.jobs.len() as u32);
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
            jobs: self.jobs.iter().copied().collect(),
            availability: match health {
                Health::Well => cohabit_policy::DeviceAvailability::Open,
                Health::Recovering(_) => cohabit_policy::DeviceAvailability::Recovering,
                Health::Fenced(_) => cohabit_policy::DeviceAvailability::Closed,
            },
            sharing: SharingTerms {
                mode: match sharing {
                    DeviceSharing::Enforced | DeviceSharing::OneUser(_) => SharingMode::Enforced,
                    DeviceSharing::Unenforced(_) => SharingMode::Unenforced,
                    DeviceSharing::Alone(_) => SharingMode::Exclusive,
                },
                ranks_free: is_limited.then_some(places),
                reserve: if is_limited { limits.reserve } else { Bytes::ZERO },
                users: match sharing {
                    DeviceSharing::OneUser(_) => SharingUsers::One(None),
                    DeviceSharing::Enforced | DeviceSharing::Unenforced(_) | DeviceSharing::Alone(_) => {
                        SharingUsers::Several
                    }
                },
            },
            foreign_memory: *foreign_memory,
            peers: self.device.gpu.as_ref().map(|gpu| gpu.peers.clone()).unwrap_or_default(),
        }
    }
}
