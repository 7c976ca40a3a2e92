//! The state of the head, and questions that it answers directly.
//!
//! What a replay must restore is in `Head` itself; what the next report or plan brings again is in
//! `VolatileState`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_types::{Demand, DeviceId, JobId, NodeId, PlanRequestId, Time, WorkerKey};

use crate::alarm::Alarm;
use crate::archived_submission::Archive;
use crate::dependency_graph::DependencyGraph;
use crate::interface::{Config, DeadlineKind};
use crate::job::Job;
use crate::node::Node;
use crate::reservation_book::ReservationBook;
use crate::restored_backup::RestoredBackup;
use crate::share_book::ShareBook;
use crate::submission::SubmissionState;
use crate::volatile::VolatileState;

/// A cluster's head: every job and node it knows.
#[derive(Debug, Clone)]
pub struct Head {
    pub(crate) config: Config,
    pub(crate) last_number: u64,
    /// The latest restore of a backup, if there was one.
    pub(crate) restored_backup: Option<RestoredBackup>,
    pub(crate) last_request: u64,
    /// The request for a plan that the policy has not answered yet.
    pub(crate) open_plan_request: Option<PlanRequestId>,
    /// Whether something changed since that request.
    pub(crate) replan_needed: bool,
    /// Whether the policy predicts interference: only then can a plan change anything for running jobs.
    pub(crate) interference_aware: bool,
    /// Whether to ask for a plan because of jobs that share devices, although no job waits.
    pub(crate) reconsider_colocations: bool,
    /// When the head was last started. Orders of before may never have been sent.
    pub(crate) started_at: Time,
    /// When the policy wants to be asked again.
    pub(crate) next_plan_at: Option<Time>,
    /// By job number. Shared with snapshots; changed through `submission_mut`.
    pub(crate) submissions: BTreeMap<u64, Arc<SubmissionState>>,
    /// Plain jobs and members of arrays; an array as a whole is only a submission. Members to which nothing
    /// happened yet share one `Job` in memory; changed through `job_mut`.
    pub(crate) jobs: BTreeMap<JobId, Arc<Job>>,
    /// Pending jobs that only wait for room in the cluster.
    pub(crate) eligible: BTreeSet<JobId>,
    /// Jobs that have not ended.
    pub(crate) active: BTreeSet<JobId>,
    /// Ended jobs by the time of their end.
    pub(crate) ended: BTreeSet<(Time, JobId)>,
    /// Submissions all of whose jobs have ended, by the time of the last end, as far as they may be archived.
    pub(crate) ended_submissions: BTreeSet<(Time, u64)>,
    /// What is left in memory of submissions that were archived.
    pub(crate) archive: Archive,
    /// The submissions that wait for the end of a job, or of an array as a whole.
    pub(crate) dependencies: DependencyGraph,
    /// Earlier submissions by user and idempotency key.
    pub(crate) idempotency_keys: BTreeMap<String, BTreeMap<String, u64>>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    /// What users hold and used.
    pub(crate) shares: ShareBook,
    /// The times for which nodes are reserved.
    pub(crate) reservations: ReservationBook,
    /// How many nodes ever joined; gives each its place in the order.
    pub(crate) nodes_joined: u64,
    pub(crate) alarms: BTreeSet<(Time, Alarm)>,
    pub(crate) volatile: VolatileState,
}

/// Heads are equal if a replay would see no difference: what is volatile does not count.
impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        // A new field does not compile until it is decided here whether it counts.
        let Head {
            config,
            last_number,
            restored_backup,
            last_request,
            open_plan_request,
            replan_needed,
            interference_aware,
            reconsider_colocations,
            started_at,
            next_plan_at,
            submissions,
            jobs,
            eligible,
            active,
            ended,
            ended_submissions,
            archive,
            dependencies,
            idempotency_keys,
            nodes,
            shares,
            reservations,
            nodes_joined,
            alarms,
            volatile: _,
        } = self;
        *config == other.config
            && *last_number == other.last_number
            && *restored_backup == other.restored_backup
            && *last_request == other.last_request
            && *open_plan_request == other.open_plan_request
            && *replan_needed == other.replan_needed
            && *interference_aware == other.interference_aware
            && *reconsider_colocations == other.reconsider_colocations
            && *started_at == other.started_at
            && *next_plan_at == other.next_plan_at
            && *submissions == other.submissions
            && *jobs == other.jobs
            && *eligible == other.eligible
            && *active == other.active
            && *ended == other.ended
            && *ended_submissions == other.ended_submissions
            && *archive == other.archive
            && *dependencies == other.dependencies
            && *idempotency_keys == other.idempotency_keys
            && *nodes == other.nodes
            && *shares == other.shares
            && *reservations == other.reservations
            && *nodes_joined == other.nodes_joined
            && *alarms == other.alarms
    }
}

impl Default for Head {
    fn default() -> Head {
        Head::new()
    }
}

impl Head {
    /// A head that knows nothing yet.
    pub fn new() -> Head {
        Head {
            config: Config::default(),
            last_number: 0,
            restored_backup: None,
            last_request: 0,
            open_plan_request: None,
            replan_needed: false,
            interference_aware: false,
            reconsider_colocations: false,
            started_at: Time::EPOCH,
            next_plan_at: None,
            submissions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            eligible: BTreeSet::new(),
            active: BTreeSet::new(),
            ended: BTreeSet::new(),
            ended_submissions: BTreeSet::new(),
            archive: Archive::default(),
            dependencies: DependencyGraph::default(),
            idempotency_keys: BTreeMap::new(),
            nodes: BTreeMap::new(),
            shares: ShareBook::default(),
            reservations: ReservationBook::default(),
            nodes_joined: 0,
            alarms: BTreeSet::new(),
            volatile: VolatileState::default(),
        }
    }

    /// When to send the next [`crate::Event::Alarm`], and what for.
    pub fn deadline(&self) -> Option<(Time, DeadlineKind)> {
        let alarm = self.alarms.first().map(|(at, alarm)| (*at, alarm.kind()));
        let wake = self.next_plan_at.map(|at| (at, DeadlineKind::PlannedWake));
        let retention = self
            .ended
            .first()
            .map(|(ended_at, _)| (*ended_at + self.config.retention, DeadlineKind::Retention));
        let archive = self.archive_deadline().map(|at| (at, DeadlineKind::Archive));
        let archived = self.archive_retention_deadline().map(|at| (at, DeadlineKind::Retention));
        [alarm, wake, retention, archive, archived].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Whether jobs share a device now.
    pub fn has_colocated_jobs(&self) -> bool {
        self.nodes.values().flat_map(|node| &node.devices).any(|device| device.jobs.len() > 1)
    }

    /// The job, for a change.
    pub(crate) fn job_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id).map(Arc::make_mut)
    }

    /// The submission with this number, for a change.
    pub(crate) fn submission_mut(&mut self, number: u64) -> Option<&mut SubmissionState> {
        self.submissions.get_mut(&number).map(Arc::make_mut)
    }

    /// Whether a job only waits for room in the cluster.
    pub fn has_pending(&self) -> bool {
        !self.eligible.is_empty()
    }

    /// How many jobs and members are in memory.
    pub fn job_count(&self) -> usize {
        self.jobs.len()
    }

    /// Every job that has not ended.
    pub fn live_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.active.iter().copied()
    }

    /// What a job in memory demands, and what a policy knows of it besides.
    pub fn demand_and_traits(&self, job: JobId) -> Option<(Demand, Arc<JobTraits>)> {
        let submission = self.jobs.get(&job).and_then(|_| self.submissions.get(&job.number))?;
        Some((self.demand(job), self.traits(job.number, submission)))
    }

    /// What a policy knows of the jobs of a submission, besides their demand.
    pub(crate) fn traits(&self, number: u64, submission: &SubmissionState) -> Arc<JobTraits> {
        self.volatile.traits.get(&number).cloned().unwrap_or_else(|| Arc::new(submission.traits()))
    }

    /// A submission all of whose jobs have ended needs none: if one is queued again, they are made again.
    pub(crate) fn forget_traits(&mut self, number: u64) {
        if self.submissions.get(&number).is_some_and(|it| it.has_ended()) {
            self.volatile.traits.remove(&number);
        }
    }

    /// Makes the traits of a submission once, for all its jobs and all views of them.
    pub(crate) fn keep_traits(&mut self, number: u64) {
        let Some(submission) = self.submissions.get(&number) else { return };
        let VolatileState { traits, pool, .. } = &mut self.volatile;
        traits.entry(number).or_insert_with(|| pool.shared_traits(submission.traits()));
    }

    /// The models of all devices that have memory of their own, each once.
    pub fn gpu_models(&self) -> BTreeSet<&str> {
        let devices = self.nodes.values().flat_map(|node| &node.devices).map(|it| &it.device);
        devices.filter(|device| device.memory.is_some()).map(|device| device.model.as_str()).collect()
    }

    /// The model of a device.
    pub fn model_of(&self, node: NodeId, device: &DeviceId) -> Option<&str> {
        let mut devices = self.nodes.get(&node)?.devices.iter().map(|it| &it.device);
        devices.find(|it| it.id == *device).map(|it| it.model.as_str())
    }

    /// The revision of a job or of an array as a whole: differs after every change, and is never 0.
    pub fn revision(&self, job: JobId) -> Option<u64> {
        let submission = self.submissions.get(&job.number)?;
        let known = self.jobs.get(&job);
        if known.is_none() && !self.is_array(job) {
            return None;
        }
        let last_event = known.and_then(|job| job.events.last()).map_or(submission.submitted_at, |it| it.at);
        Some(self.volatile.revisions.get(&job).copied().unwrap_or(last_event.as_micros().max(1)))
    }

    /// The link of a node, while there is one.
    pub fn link_of(&self, node: NodeId) -> Option<WorkerKey> {
        self.nodes.get(&node)?.key()
    }

    /// Whether the id stands for an array as a whole.
    pub(crate) fn is_array(&self, job: JobId) -> bool {
        job.index.is_none() && self.submissions.get(&job.number).is_some_and(|it| it.spec.array.is_some())
    }
}
