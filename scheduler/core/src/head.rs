//! The head's state.
//!
//! What replay must restore is serialised; what the next report or plan brings again is `VolatileState` and is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use cohabit_policy::{JobForecast, JobTraits};
use cohabit_types::{
    AttemptId, ColocationSlowdown, Demand, DeviceId, JobId, NodeId, PlanRequestId, Progress, Time, WorkerKey,
};
use serde::{Deserialize, Serialize};

use crate::alarm::Alarm;
use crate::door::{Config, DeadlineKind};
use crate::job::Job;
use crate::node::{Node, Telemetry};
use crate::queue::WaitingQueue;
use crate::sight::PendingChanges;
use crate::submission::Submission;

/// A cluster's head: every job and node it knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    pub(crate) config: Config,
    pub(crate) last_number: u64,
    pub(crate) last_ticket: u64,
    /// The question that the policy has not answered yet.
    pub(crate) open_ticket: Option<PlanRequestId>,
    /// Whether something changed since that question was asked.
    pub(crate) plan_wanted: bool,
    /// Whether the policy ever learned of interference: only then has it to say something of jobs that run.
    #[serde(default)]
    pub(crate) learns: bool,
    /// Whether it is to be asked about jobs that share devices, although no job waits.
    #[serde(default)]
    pub(crate) reconsiders: bool,
    /// When this life of the head began. What it ordered in an earlier one may never have been sent.
    #[serde(default)]
    pub(crate) started_at: Time,
    /// When the policy wants to be asked again.
    pub(crate) wake: Option<Time>,
    /// By job number. Shared with snapshots; changed through `submission_mut`.
    pub(crate) submissions: BTreeMap<u64, Arc<Submission>>,
    /// Plain jobs and members of arrays; an array as a whole is only a submission. Members to which nothing
    /// happened yet are one in memory; changed through `job_mut`.
    #[serde(with = "crate::runs")]
    pub(crate) jobs: BTreeMap<JobId, Arc<Job>>,
    /// Pending jobs that nothing but room keeps waiting.
    pub(crate) eligible: BTreeSet<JobId>,
    /// Jobs that have not ended.
    pub(crate) unended: BTreeSet<JobId>,
    /// Ended jobs by the time of their end.
    pub(crate) ended: BTreeSet<(Time, JobId)>,
    /// Who waits for the end of a job, or of an array as a whole.
    pub(crate) dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Earlier submissions by user and idempotency key.
    pub(crate) keys: BTreeMap<String, BTreeMap<String, u64>>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    /// How many nodes ever joined; gives each its place in the order.
    pub(crate) nodes_joined: u64,
    pub(crate) alarms: BTreeSet<(Time, Alarm)>,
    #[serde(skip)]
    pub(crate) live: VolatileState,
}

/// What is not worth a place in the journal.
#[derive(Debug, Default, Clone)]
pub(crate) struct VolatileState {
    pub(crate) progress: BTreeMap<AttemptId, Progress>,
    /// What devices last showed.
    pub(crate) telemetry: Telemetry,
    /// Grows with each change of a job or an array as a whole; never repeats, so a watcher cannot miss one.
    pub(crate) revisions: BTreeMap<JobId, u64>,
    /// What pending jobs have to expect, as the policy last said.
    pub(crate) expected: BTreeMap<JobId, JobForecast>,
    /// What neighbours on a device cost each other, as was last said.
    pub(crate) company: BTreeMap<JobId, ColocationSlowdown>,
    /// Who is ahead of whom, once somebody has asked.
    pub(crate) queue: OnceLock<WaitingQueue>,
    /// What of all this the policy has not seen yet.
    pub(crate) sight: PendingChanges,
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
            last_ticket: 0,
            open_ticket: None,
            plan_wanted: false,
            learns: false,
            reconsiders: false,
            started_at: Time::EPOCH,
            wake: None,
            submissions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            eligible: BTreeSet::new(),
            unended: BTreeSet::new(),
            ended: BTreeSet::new(),
            dependents: BTreeMap::new(),
            keys: BTreeMap::new(),
            nodes: BTreeMap::new(),
            nodes_joined: 0,
            alarms: BTreeSet::new(),
            live: VolatileState::default(),
        }
    }

    /// When to send the next [`crate::Event::Alarm`], and what for.
    pub fn deadline(&self) -> Option<(Time, DeadlineKind)> {
        let alarm = self.alarms.first().map(|(at, alarm)| (*at, alarm.why()));
        let wake = self.wake.map(|at| (at, DeadlineKind::Wake));
        let retention = self
            .ended
            .first()
            .map(|(ended_at, _)| (*ended_at + self.config.retention, DeadlineKind::Retention));
        [alarm, wake, retention].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Takes note of what pending jobs have to expect. Not an event: it changes what people are told, and
    /// nothing else.
    pub fn expect(&mut self, expected: Vec<JobForecast>) {
        let waiting = expected.into_iter().filter(|it| self.eligible.contains(&it.job));
        self.live.expected = waiting.map(|it| (it.job, it)).collect();
    }

    /// Takes note of what neighbours on a device cost each other; no event either.
    pub fn set_colocation_slowdowns(&mut self, companionships: Vec<ColocationSlowdown>) {
        self.live.company = companionships.into_iter().map(|it| (it.job, it)).collect();
    }

    /// Whether that and the outlook were told of all that is to be seen now. Of an array the policy does not
    /// see every member.
    pub fn has_fresh_forecasts(&self) -> bool {
        let mut plain = self.eligible.iter().filter(|job| job.index.is_none());
        plain.all(|job| self.live.expected.contains_key(job)) && self.knows_colocation_slowdowns()
    }

    /// Whether jobs share a device now.
    pub fn has_colocated_jobs(&self) -> bool {
        self.nodes.values().flat_map(|node| &node.devices).any(|device| device.residents.len() > 1)
    }

    /// The job, to be changed.
    pub(crate) fn job_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.jobs.get_mut(&id).map(Arc::make_mut)
    }

    /// What was submitted under this number, to be changed.
    pub(crate) fn submission_mut(&mut self, number: u64) -> Option<&mut Submission> {
        self.submissions.get_mut(&number).map(Arc::make_mut)
    }

    /// The node, to be changed; the policy will see that it did.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.live.sight.note_node(id);
        self.nodes.get_mut(&id)
    }

    /// Whether a job waits for room.
    pub fn has_pending(&self) -> bool {
        !self.eligible.is_empty()
    }

    /// How many jobs and members are in memory.
    pub fn job_count(&self) -> usize {
        self.jobs.len()
    }

    /// Every job that has not ended.
    pub fn live_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.unended.iter().copied()
    }

    /// Every job that ended and is still in memory.
    pub fn ended_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.ended.iter().map(|(_, job)| *job)
    }

    /// What a job in memory demands, and what it tells of itself.
    pub fn demand_and_traits(&self, job: JobId) -> Option<(Demand, Arc<JobTraits>)> {
        let submission = self.jobs.get(&job).and_then(|_| self.submissions.get(&job.number))?;
        Some((self.demand(job), submission.traits()))
    }

    /// The models of the devices with a memory of their own, on whatever node, each once.
    pub fn gpu_models(&self) -> BTreeSet<&str> {
        let devices = self.nodes.values().flat_map(|node| &node.devices).map(|it| &it.device);
        devices.filter(|device| device.memory.is_some()).map(|device| device.model.as_str()).collect()
    }

    /// The model of a device.
    pub fn model_of(&self, node: NodeId, device: &DeviceId) -> Option<&str> {
        let mut devices = self.nodes.get(&node)?.devices.iter().map(|it| &it.device);
        devices.find(|it| it.id == *device).map(|it| it.model.as_str())
    }

    /// Whether a job occupies its place in the cluster now.
    pub fn is_placed(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.live_attempt().is_some())
    }

    /// The revision of a job or of an array as a whole: differs after every change, and is never 0.
    pub fn revision(&self, job: JobId) -> Option<u64> {
        let submission = self.submissions.get(&job.number)?;
        let known = self.jobs.get(&job);
        if known.is_none() && !self.is_array(job) {
            return None;
        }
        let last_told = known.and_then(|job| job.story.last()).map_or(submission.submitted_at, |it| it.at);
        Some(self.live.revisions.get(&job).copied().unwrap_or(last_told.as_micros().max(1)))
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
