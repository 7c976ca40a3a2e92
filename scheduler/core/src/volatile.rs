//! State that is not journaled: the next report brings it again, or it follows from the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_types::{AttemptId, DeviceId, DeviceTelemetry, JobId, NodeId, Progress};

use crate::account_keys::AccountKeys;
use crate::application_index::ApplicationIndex;
use crate::eligible_demand::EligibleDemand;
use crate::figure_counters::FigureCounters;
use crate::spec_pool::SpecPool;
use crate::user_queues::UserQueues;
use crate::user_usage::Usage;
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
    /// What a policy knows of the jobs of each submission, made once for all of them. Ended submissions may
    /// have none.
    pub(crate) traits: BTreeMap<u64, Arc<JobTraits>>,
    /// Finds specifications and traits that are equal, so that jobs share them.
    pub(crate) pool: SpecPool,
    /// The eligible jobs in the order of the queue; follows from `Head::eligible`.
    pub(crate) queue: WaitingQueue,
    /// What those of each user would hold; follows from `Head::eligible`.
    pub(crate) waiting_demand: EligibleDemand,
    /// The queue of each user whose running jobs are limited; follows from `Head::eligible`.
    pub(crate) user_queues: UserQueues,
    /// What is counted for metrics since the head started.
    pub(crate) figures: FigureCounters,
    /// What each user has in memory; follows from the submissions.
    pub(crate) usage: Usage,
    /// The accounts that alone are served by some nodes; follows from the nodes.
    pub(crate) accounts: AccountKeys,
    /// The applications that have not ended; follows from the live jobs.
    pub(crate) applications: ApplicationIndex,
    /// The jobs with a live attempt whose cores and host memory may change; follows from the live jobs.
    pub(crate) fungible: BTreeSet<JobId>,
    /// The jobs that were ordered in advance, each by the attempt that it follows; follows from the waiting
    /// jobs.
    pub(crate) followers: BTreeMap<AttemptId, JobId>,
    /// The nodes that were given up, and those of them that came back since; follows from the nodes. No alarm
    /// has to look at all nodes for those to forget.
    pub(crate) lost_nodes: BTreeSet<NodeId>,
}
