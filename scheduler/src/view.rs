//! What a policy sees: the nodes that take jobs, the jobs that may start, and those that run.

use std::sync::Arc;

use cohabit_proto::{
    Bytes, Demand, DeviceId, DeviceKind, Estimate, JobId, ModelDescription, NodeId, Placement, Share, Span,
    Time,
};

/// The cluster at one moment, as far as a policy may use it.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The moment.
    pub now: Time,
    /// Nodes that take jobs, in the order in which they first joined.
    pub nodes: Vec<NodeView>,
    /// Jobs that could start now if there were room, in order of submission. An array shows no more members
    /// at once than could possibly start.
    pub pending: Vec<PendingJob>,
    /// Jobs that hold devices, in order of submission.
    pub running: Vec<RunningJob>,
}

/// A node that takes jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Which.
    pub id: NodeId,
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
    /// When its attempt was placed.
    pub started_at: Time,
    /// What it needs.
    pub demand: Demand,
    /// Where it is.
    pub placement: Placement,
    /// How long it still runs, by its own progress.
    pub remaining: Option<Span>,
    /// What is known about it.
    pub traits: Arc<JobTraits>,
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
}
