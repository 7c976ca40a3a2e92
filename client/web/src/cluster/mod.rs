//! What is known of the cluster: all jobs and nodes as the head last told.
//!
//! [`upstream`] asks the head and applies the answers to [`Cluster`]; views only read it.

pub(crate) mod answer_cache;
pub(crate) mod job_feed;
pub(crate) mod job_table;
pub(crate) mod metric_digest;
pub(crate) mod upstream;
pub(crate) mod utilization;
pub(crate) mod viewers;

use std::time::{Duration, Instant};

use cohabit_client::types::{JobId, NodeRecord, Time};

use self::job_feed::{FeedChanges, residents};
use self::job_table::JobTable;
use self::utilization::UtilizationHistory;

/// Figures that are older than this are not shown as the present ones.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(5);

/// The cluster as the head last told.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) jobs: JobTable,
    /// By name.
    pub(crate) nodes: Vec<NodeRecord>,
    /// What keeps the head from accepting changes.
    pub(crate) problems: Vec<String>,
    pub(crate) utilization: UtilizationHistory,
    /// When the head last answered, by both clocks.
    pub(crate) seen: Option<(Instant, Time)>,
    /// Why the latest look failed, if it did.
    pub(crate) failure: Option<String>,
}

/// What one look at the head brings.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) nodes: Vec<NodeRecord>,
    pub(crate) problems: Vec<String>,
    pub(crate) jobs: FeedChanges,
}

impl Cluster {
    /// Takes over what a look brought.
    pub(crate) fn apply(&mut self, look: Look, now: Instant, wall: Time) {
        let Look { mut nodes, problems, jobs } = look;
        nodes.sort_by_cached_key(|node| cohabit_console::natural_key(&node.name));
        self.utilization.add(&nodes, wall);
        self.jobs.apply(jobs, wall);
        (self.nodes, self.problems) = (nodes, problems);
        (self.seen, self.failure) = (Some((now, wall)), None);
    }

    /// Whether the head has been silent for so long that what is known may be wrong.
    pub(crate) fn is_stale(&self, now: Instant) -> bool {
        self.seen.is_none_or(|(at, _)| now.saturating_duration_since(at) >= STALE_AFTER)
    }

    /// The time of what is known, which all spans are counted to.
    pub(crate) fn as_of(&self) -> Time {
        self.seen.map_or(Time::EPOCH, |(_, wall)| wall)
    }

    /// Jobs on devices of these nodes that the table does not have.
    pub(crate) fn unknown_residents(&self, nodes: &[NodeRecord]) -> Vec<JobId> {
        residents(nodes).into_iter().filter(|job| self.jobs.get(*job).is_none()).collect()
    }
}
