//! The running jobs whose shares may change, by node, and what their workers could not take from them.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{HostShare, JobId, NodeId, Span, Time};

use crate::{NodeView, RunPhase, RunningJob, View, ViewChange};

/// What a worker could not take from a job is not asked for again within this time.
const STUCK_FOR: Span = Span::from_secs(600);

/// The running jobs on each node whose shares may change.
#[derive(Debug, Default, Clone)]
pub(super) struct Residents {
    by_node: BTreeMap<NodeId, BTreeSet<JobId>>,
    jobs: BTreeMap<JobId, Resident>,
}

/// What is remembered of such a job.
#[derive(Debug, Clone, Copy)]
struct Resident {
    node: NodeId,
    /// What its worker was told last, until it answers.
    told: Option<HostShare>,
    /// The least that its worker left it when it was told to leave less, and when that was.
    stuck: Option<(HostShare, Time)>,
}

impl Residents {
    /// Follows the changes. Returns the nodes that they concern.
    pub(super) fn learn(&mut self, now: Time, changes: &[ViewChange]) -> BTreeSet<NodeId> {
        let mut nodes = BTreeSet::new();
        for change in changes {
            match change {
                ViewChange::Node(node) => _ = nodes.insert(node.id),
                ViewChange::NodeGone(node) => _ = nodes.remove(node),
                ViewChange::Running(job) => nodes.extend(self.update(now, job)),
                ViewChange::Pending(job) => nodes.extend(self.forget(job.id)),
                ViewChange::Gone(job) => nodes.extend(self.forget(*job)),
                ViewChange::Shares(_) => {}
            }
        }
        nodes
    }

    fn update(&mut self, now: Time, job: &RunningJob) -> Option<NodeId> {
        let part = job.placement.parts.first().filter(|_| job.demand.is_fungible())?;
        let known = self.jobs.get(&job.id).copied();
        let share = job.host_share();
        let answered = known.and_then(|known| known.told).filter(|_| job.allotting.is_none());
        let stuck = match answered {
            Some(told) if !share.is_within(told) => Some((share, now)),
            Some(_) => None,
            None => known.and_then(|known| known.stuck),
        };
        self.jobs.insert(job.id, Resident { node: part.node, told: job.allotting, stuck });
        self.by_node.entry(part.node).or_default().insert(job.id);
        Some(part.node)
    }

    fn forget(&mut self, job: JobId) -> Option<NodeId> {
        let node = self.jobs.remove(&job)?.node;
        if let Some(jobs) = self.by_node.get_mut(&node) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.by_node.remove(&node);
            }
        }
        Some(node)
    }

    /// Those on a node.
    pub(super) fn on<'v>(&self, node: NodeId, view: &'v View) -> impl Iterator<Item = &'v RunningJob> {
        self.by_node.get(&node).into_iter().flatten().filter_map(|job| view.running.get(job))
    }

    /// The least that can be left to a job: what it needs, or what its worker could not take from it.
    pub(super) fn least(&self, job: &RunningJob, now: Time) -> HostShare {
        let stuck = self.stuck(job, now).map(|(share, _)| share);
        job.demand.least_host().at_least(stuck.unwrap_or_default())
    }

    /// When a job may be asked again for what its worker could not take from it.
    pub(super) fn stuck_until(&self, job: &RunningJob, now: Time) -> Option<Time> {
        self.stuck(job, now).map(|(_, until)| until)
    }

    fn stuck(&self, job: &RunningJob, now: Time) -> Option<(HostShare, Time)> {
        let (share, since) = self.jobs.get(&job.id)?.stuck?;
        Some((share, since + STUCK_FOR)).filter(|(_, until)| now < *until)
    }

    /// What jobs on a node are giving up: free as soon as their worker answers.
    pub(super) fn being_taken(&self, node: NodeId, view: &View) -> HostShare {
        let told =
            self.on(node, view).filter_map(|job| Some(job.host_share().saturating_sub(job.allotting?)));
        told.fold(HostShare::default(), HostShare::plus)
    }

    /// What jobs on a node hold beyond what they have by rights, and can be made to give up.
    pub(super) fn reclaimable(&self, node: &NodeView, view: &View) -> HostShare {
        if !node.changes_host_shares {
            return HostShare::default();
        }
        let going_on = self.on(node.id, view).filter(|job| job.phase == RunPhase::Running);
        let excess = going_on.map(|job| {
            let rights = node.fair_share(&job.demand, job.demand.devices());
            let kept = job.allotting.map_or(rights, |told| rights.at_most(told));
            job.host_share().saturating_sub(kept.at_least(self.least(job, view.now)))
        });
        excess.fold(HostShare::default(), HostShare::plus)
    }
}
