//! State that is not journaled: the next report or plan brings it again, or it only shapes answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::{JobForecast, JobTraits};
use cohabit_types::{AttemptId, ColocationSlowdown, DeviceId, DeviceTelemetry, JobId, NodeId, Progress};

use crate::waiting_queue::WaitingQueue;

/// What the devices of all nodes last reported.
pub(crate) type Telemetry = BTreeMap<(NodeId, DeviceId), DeviceTelemetry>;

/// State that is not journaled.
#[derive(Debug, Default, Clone)]
pub(crate) struct VolatileState {
    pub(crate) progress: BTreeMap<AttemptId, Progress>,
    /// What devices last reported.
    pub(crate) telemetry: Telemetry,
    /// Grows with each change of a job or an array as a whole; never repeats, so a watcher misses no change.
    pub(crate) revisions: BTreeMap<JobId, u64>,
    /// When queued jobs are expected to start and end, as the policy last said.
    pub(crate) forecasts: BTreeMap<JobId, JobForecast>,
    /// How much jobs on the same devices slow each other down, as the policy last said.
    pub(crate) colocation_slowdowns: BTreeMap<JobId, ColocationSlowdown>,
    /// What a policy knows of the jobs of each submission, made once for all of them. Ended submissions may
    /// have none.
    pub(crate) traits: BTreeMap<u64, Arc<JobTraits>>,
    /// The eligible jobs in the order of the queue; follows from `Head::eligible`.
    pub(crate) queue: WaitingQueue,
    /// What of all this the policy has not seen yet.
    pub(crate) pending_changes: PendingChanges,
}

/// What changed since the policy last looked.
#[derive(Debug, Default, Clone)]
pub(crate) struct PendingChanges {
    pub(crate) jobs: BTreeSet<JobId>,
    pub(crate) nodes: BTreeSet<NodeId>,
    /// The pending members that it was shown of each array.
    pub(crate) shown: BTreeMap<u64, BTreeSet<JobId>>,
    /// The capacity when it last looked: how much of an array is shown depends on it.
    pub(crate) capacity: ClusterCapacity,
}

/// What all nodes together have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterCapacity {
    pub(crate) devices: u64,
    pub(crate) cpus: u64,
}

impl PendingChanges {
    pub(crate) fn note_job(&mut self, job: JobId) {
        self.jobs.insert(job);
    }

    pub(crate) fn note_node(&mut self, node: NodeId) {
        self.nodes.insert(node);
    }
}
