//! What a policy sees: the nodes that take jobs, the jobs that may start, and those that run.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    Bytes, Demand, DeviceId, DeviceKind, Estimate, GpuPeer, JobId, JobSpec, LaunchMode, LinkBandwidths,
    ModelDescription, NodeId, Placement, Share, Span, Time,
};

/// The cluster at one moment, as far as a policy may use it. Kept up to date by [`ViewChange`]s, so that a plan
/// costs what changed and not what there is.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct View {
    /// The moment.
    pub now: Time,
    /// Nodes that take jobs, in the order in which they first joined.
    pub nodes: Vec<NodeView>,
    /// Jobs that could start now if there were room. An array shows no more members at once than could
    /// possibly start, beside those that the policy itself stopped.
    pub pending: BTreeMap<JobId, PendingJob>,
    /// Jobs that hold devices.
    pub running: BTreeMap<JobId, RunningJob>,
}

/// One difference between a view and the next.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewChange {
    /// A node takes jobs, and this is what is left of it.
    Node(NodeView),
    /// A node takes no jobs any more.
    NodeGone(NodeId),
    /// A job could start if there were room: a new one, or one that has lost its devices.
    Pending(PendingJob),
    /// A job holds devices, or more is known about its end.
    Running(RunningJob),
    /// A job neither waits for room nor holds devices.
    Gone(JobId),
}

impl View {
    /// Takes the changes over, in their order.
    pub fn apply(&mut self, changes: &[ViewChange]) {
        changes.iter().for_each(|change| self.apply_one(change));
    }

    fn apply_one(&mut self, change: &ViewChange) {
        match change {
            ViewChange::Node(node) => match self.nodes.binary_search_by_key(&node.ordinal, |it| it.ordinal) {
                Ok(known) => self.nodes[known].clone_from(node),
                Err(place) => self.nodes.insert(place, node.clone()),
            },
            ViewChange::NodeGone(id) => self.nodes.retain(|node| node.id != *id),
            ViewChange::Pending(job) => {
                self.running.remove(&job.id);
                self.pending.insert(job.id, job.clone());
            }
            ViewChange::Running(job) => {
                self.pending.remove(&job.id);
                self.running.insert(job.id, job.clone());
            }
            ViewChange::Gone(id) => {
                self.pending.remove(id);
                self.running.remove(id);
            }
        }
    }

    /// All there is, as changes of an empty view: for a policy that has seen nothing. Jobs come in the order
    /// in which they could first have run.
    #[must_use]
    pub fn as_changes(&self) -> Vec<ViewChange> {
        let nodes = self.nodes.iter().cloned().map(ViewChange::Node);
        let mut pending: Vec<&PendingJob> = self.pending.values().collect();
        pending.sort_by_key(|job| (job.eligible_at, job.id));
        let running = self.running.values().cloned().map(ViewChange::Running);
        nodes.chain(running).chain(pending.into_iter().cloned().map(ViewChange::Pending)).collect()
    }
}

/// A node that takes jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Which.
    pub id: NodeId,
    /// Its place in the order in which nodes first joined.
    pub ordinal: u64,
    /// For `why` texts.
    pub name: String,
    /// All its cores.
    pub cpus: u32,
    /// Cores that no job claims.
    pub cpus_free: u32,
    /// All its memory.
    pub memory: Bytes,
    /// Memory that no job claims.
    pub memory_free: Bytes,
    /// How fast its devices reach each other and those of other nodes.
    pub links: LinkBandwidths,
    /// Its devices in the order in which they are filled.
    pub devices: Vec<DeviceView>,
}

/// A device and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceView {
    /// Which.
    pub id: DeviceId,
    /// What it really is.
    pub kind: DeviceKind,
    /// Its model.
    pub model: String,
    /// What nobody has taken.
    pub free: Share,
    /// All its memory, if it has memory of its own to count.
    pub memory: Option<Bytes>,
    /// Memory that nobody has claimed.
    pub memory_free: Option<Bytes>,
    /// Its co-location set.
    pub residents: Vec<JobId>,
    /// Whether it may be given to anybody now.
    pub intake: DeviceAvailability,
    /// How it may be shared.
    pub sharing: SharingTerms,
    /// Memory that processes hold which Cohabit did not start.
    pub foreign_memory: Bytes,
    /// How other devices of its node are reached from it, where that is known.
    pub peers: Vec<GpuPeer>,
}

/// Whether a device may be given to jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceAvailability {
    /// It may.
    Open,
    /// Not yet: it comes back by itself.
    Recovering,
    /// Not until somebody has looked after it.
    Closed,
}

/// How a device may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharingTerms {
    /// What becomes of the limits of those who share it.
    pub mode: SharingMode,
    /// How many more ranks it may hold, if their number is limited.
    pub places_free: Option<u32>,
    /// Memory that those who share it leave free together.
    pub reserve: Bytes,
}

impl Default for SharingTerms {
    /// By anybody, as bookkeeping.
    fn default() -> SharingTerms {
        SharingTerms { mode: SharingMode::Unenforced, places_free: None, reserve: Bytes::ZERO }
    }
}

/// What becomes of the limits of those who share a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharingMode {
    /// They are enforced.
    Enforced,
    /// They are only bookkeeping.
    Unenforced,
    /// Nobody may share it.
    Exclusive,
}

/// A job that could start now if there were room.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingJob {
    /// Which.
    pub id: JobId,
    /// The larger, the earlier.
    pub priority: i32,
    /// When it was submitted.
    pub submitted_at: Time,
    /// Since when it could have run.
    pub eligible_at: Time,
    /// What it needs.
    pub demand: Demand,
    /// What is known about it.
    pub traits: Arc<JobTraits>,
}

/// A job that holds devices.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningJob {
    /// Which.
    pub id: JobId,
    /// The larger, the later it makes room for others.
    pub priority: i32,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When its attempt was placed.
    pub started_at: Time,
    /// What it needs.
    pub demand: Demand,
    /// Where it is.
    pub placement: Placement,
    /// Whether it is about to leave them.
    pub phase: RunPhase,
    /// When it ends: by its own progress, or else by what was expected of it where it is.
    pub ends_at: Option<Time>,
    /// What is known about it.
    pub traits: Arc<JobTraits>,
}

/// Whether a job that holds devices goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    /// It runs, or is being started.
    Running,
    /// It was told to stop: its devices come free soon.
    Stopping,
}

/// What is known about a job before it runs; shared by all members of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTraits {
    /// Who submitted it.
    pub user: String,
    /// Its group of recurring jobs.
    pub group: Option<String>,
    /// What it trains.
    pub model: Option<ModelDescription>,
    /// What is expected of it, frozen at submission.
    pub estimate: Option<Estimate>,
    /// How long it may run.
    pub time_limit: Option<Span>,
    /// Who launches its ranks: only where we do can they be told apart.
    pub launch: LaunchMode,
}

impl JobTraits {
    /// What this user's job tells of itself, and what is expected of it.
    #[must_use]
    pub fn of(user: &str, spec: &JobSpec, estimate: Option<Estimate>) -> JobTraits {
        JobTraits {
            user: user.to_owned(),
            group: spec.group.clone(),
            model: spec.model.clone(),
            estimate,
            time_limit: spec.time_limit,
            launch: spec.launch,
        }
    }
}
