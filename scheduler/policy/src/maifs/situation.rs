//! One sub-step as the agents and the teacher see it: what each node could start, where and with what.

use std::sync::Arc;

use cohabit_types::{HostShare, JobId, NodeId, Share, Span};

use super::job_places::JobPlace;
use super::observation::JointObservation;
use super::share_levels::{LEVELS, LevelShares};

/// A job that may start on a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PossibleStart {
    pub(super) place: JobPlace,
    pub(super) shares: LevelShares,
    /// How fast the job is with the share of each level, 1 with the proportional one.
    pub(super) speeds: [f64; LEVELS],
}

/// One sub-step.
#[derive(Debug, Clone)]
pub(super) struct Situation {
    /// The nodes, with the share of their devices that is free.
    pub(super) nodes: Vec<(NodeId, Share)>,
    /// The jobs of the window, with their expected run times.
    pub(super) window: Vec<(JobId, Span)>,
    /// Whether the first job of the window has to start.
    pub(super) is_first_due: bool,
    /// What each node could do with each job, `[V, K]`.
    pub(super) starts: Vec<Option<PossibleStart>>,
    pub(super) observation: Arc<JointObservation>,
}

impl Situation {
    pub(super) fn start(&self, node: usize, job: usize) -> Option<&PossibleStart> {
        self.starts[node * self.window.len() + job].as_ref()
    }

    /// The level at which a job is fastest on a node, with the fewest cores and the least memory; `None`
    /// where it may not start.
    pub(super) fn best_level(&self, node: usize, job: usize) -> Option<usize> {
        let start = self.start(node, job)?;
        let levels = (0..LEVELS).filter_map(|level| Some((level, start.shares[level]?, start.speeds[level])));
        let better = |one: &(usize, HostShare, f64), other: &(usize, HostShare, f64)| {
            other.2.total_cmp(&one.2).then(one.1.cmp(&other.1))
        };
        levels.min_by(better).map(|(level, _, _)| level)
    }

    /// Whether two nodes look the same: what one of them starts, the other could as well.
    pub(super) fn is_alike(&self, one: usize, other: usize) -> bool {
        let row = |node: usize| {
            let servers = self.observation.servers();
            let width = servers.len() / self.nodes.len().max(1);
            &servers[node * width..(node + 1) * width]
        };
        row(one) == row(other) && self.observation.legal_of(one) == self.observation.legal_of(other)
    }
}
