//! Snapshots: the state of a head as plain data, in parts that can be written and read one by one.
//!
//! What grows with the number of jobs is in `SnapshotPart`s, each with some of the jobs; the rest is a
//! `HeadSnapshot`. So a snapshot is never in memory as a whole. What follows from the jobs, such as the set
//! of those that ended, is in no part: it is computed again. `scheduler/journal` owns the stored formats.

use std::collections::{BTreeMap, BTreeSet, btree_map, btree_set};
use std::iter::{Peekable, from_fn};
use std::sync::Arc;

use cohabit_types::{JobId, NodeId, PlanRequestId, Time};

use crate::account_keys::AccountKeys;
use crate::alarm::Alarm;
use crate::archived_submission::{Archive, ArchivedSubmission};
use crate::dependency_graph::DependencyGraph;
use crate::head::Head;
use crate::interface::Config;
use crate::job::Job;
use crate::node::Node;
use crate::reservation_book::ReservationBook;
use crate::restored_backup::RestoredBackup;
use crate::share_book::ShareBook;
use crate::snapshot_part::{MissingFirstJob, SnapshotPart, expand_runs, unless_same};
use crate::spec_pool::SpecPool;
use crate::submission::SubmissionState;
use crate::user_usage::Usage;
use crate::volatile::VolatileState;

/// The state of a head without its jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadSnapshot {
    /// The operator's settings.
    pub config: Config,
    /// The number of the last submission.
    pub last_number: u64,
    /// The latest restore of a backup, if there was one.
    pub restored_backup: Option<RestoredBackup>,
    /// The number of the last request for a plan.
    pub last_request: u64,
    /// The request for a plan that the policy has not answered yet.
    pub open_plan_request: Option<PlanRequestId>,
    /// Whether something changed since that request.
    pub replan_needed: bool,
    /// Whether the policy predicts interference.
    pub interference_aware: bool,
    /// Whether to ask for a plan because of jobs that share devices.
    pub reconsider_colocations: bool,
    /// When the head was last started.
    pub started_at: Time,
    /// When the policy wants to be asked again.
    pub next_plan_at: Option<Time>,
    /// The numbers of the submissions that wait for the end of a job, or of an array as a whole,
    /// in their order.
    pub dependents: BTreeMap<JobId, Vec<u64>>,
    /// The nodes.
    pub nodes: BTreeMap<NodeId, Node>,
    /// What users hold and used; `None` in snapshots of releases without fair share.
    pub shares: Option<ShareBook>,
    /// The times for which nodes are reserved.
    pub reservations: ReservationBook,
    /// How many nodes ever joined.
    pub nodes_joined: u64,
    /// The alarms that are set.
    pub alarms: BTreeSet<(Time, Alarm)>,
}

/// All jobs of a head, part by part.
#[derive(Debug)]
pub struct SnapshotParts {
    submissions: Peekable<btree_map::IntoIter<u64, Arc<SubmissionState>>>,
    jobs: btree_map::IntoIter<JobId, Arc<Job>>,
    eligible: Peekable<btree_set::IntoIter<JobId>>,
    archived: btree_map::IntoIter<u64, Arc<ArchivedSubmission>>,
    /// The last job of the previous part.
    before: Option<Arc<Job>>,
    size: usize,
}

impl Head {
    /// A copy of everything that a snapshot keeps: the head without its jobs, and the jobs in parts of
    /// `size`. The copy shares the jobs with this head.
    pub fn split_for_snapshot(&self, size: usize) -> (HeadSnapshot, SnapshotParts) {
        let rest = HeadSnapshot {
            config: self.config.clone(),
            last_number: self.last_number,
            restored_backup: self.restored_backup.clone(),
            last_request: self.last_request,
            open_plan_request: self.open_plan_request,
            replan_needed: self.replan_needed,
            interference_aware: self.interference_aware,
            reconsider_colocations: self.reconsider_colocations,
            started_at: self.started_at,
            next_plan_at: self.next_plan_at,
            dependents: self.dependencies.numbers(),
            nodes: self.nodes.clone(),
            shares: Some(self.shares.clone()),
            reservations: self.reservations.clone(),
            nodes_joined: self.nodes_joined,
            alarms: self.alarms.clone(),
        };
        let parts = SnapshotParts {
            submissions: self.submissions.clone().into_iter().peekable(),
            jobs: self.jobs.clone().into_iter(),
            eligible: self.eligible.clone().into_iter().peekable(),
            archived: self.archive.submissions(),
            before: None,
            size,
        };
        (rest, parts)
    }

    /// The head that was split into these parts.
    ///
    /// # Errors
    /// If the first job refers to one before it: the first part is missing.
    pub fn from_snapshot(rest: HeadSnapshot, parts: Vec<SnapshotPart>) -> Result<Head, MissingFirstJob> {
        let (mut submissions, mut jobs, mut eligible) = (Vec::new(), Vec::new(), Vec::new());
        let mut archived = Vec::new();
        for part in parts {
            submissions.extend(part.submissions);
            jobs.extend(part.jobs);
            eligible.extend(part.eligible);
            archived.extend(part.archived);
        }
        let mut pool = SpecPool::default();
        pool.share_all(submissions.iter_mut().map(|(_, submission)| submission));
        let archive = Archive::of(archived);
        let jobs = expand_runs(jobs)?;
        let ended = jobs.iter().filter_map(|(id, job)| Some((job.ended()?.at, *id))).collect();
        let active = jobs.iter().filter(|(_, job)| job.ended().is_none()).map(|(id, _)| *id).collect();
        let in_memory = submissions.iter().map(|(number, it)| (*number, &it.user, &it.idempotency_key));
        let archived = archive.iter().map(|(number, it)| (number, &it.user, &it.idempotency_key));
        let idempotency_keys = keys_by_user(in_memory.chain(archived));
        let submissions: BTreeMap<u64, Arc<SubmissionState>> = submissions.into_iter().collect();
        let depends_on = submissions.iter().map(|(number, it)| (*number, it.spec.depends_on.as_slice()));
        let dependencies = DependencyGraph::of(&rest.dependents, depends_on);
        let usage = Usage::of(&submissions, &jobs, &archive);
        let accounts = AccountKeys::of(rest.nodes.values().map(Node::served_users));
        let lost_nodes = rest.nodes.iter().filter(|(_, node)| node.is_lost()).map(|(id, _)| *id).collect();
        let mut volatile = VolatileState { usage, accounts, lost_nodes, pool, ..VolatileState::default() };
        for job in &eligible {
            let priority = submissions.get(&job.number).map_or(0, |submission| submission.spec.priority);
            volatile.queue.insert(priority, *job);
            volatile.waiting_demand.add(&submissions, *job);
        }
        let mut head = Head {
            config: rest.config,
            last_number: rest.last_number,
            restored_backup: rest.restored_backup,
            last_request: rest.last_request,
            open_plan_request: rest.open_plan_request,
            replan_needed: rest.replan_needed,
            interference_aware: rest.interference_aware,
            reconsider_colocations: rest.reconsider_colocations,
            started_at: rest.started_at,
            next_plan_at: rest.next_plan_at,
            submissions,
            jobs,
            eligible: eligible.into_iter().collect(),
            active,
            ended,
            ended_submissions: BTreeSet::new(),
            archive,
            dependencies,
            idempotency_keys,
            nodes: rest.nodes,
            shares: rest.shares.clone().unwrap_or_default(),
            reservations: rest.reservations,
            nodes_joined: rest.nodes_joined,
            alarms: rest.alarms,
            volatile,
        };
        head.volatile.user_queues = head.limited_queues();
        head.volatile.applications = head.live_applications();
        head.volatile.fungible = head.live_fungible();
        head.volatile.followers = head.all_followers();
        head.ended_submissions = head.all_ended_submissions();
        match rest.shares {
            None => head.seed_shares(),
            Some(_) => head.count_terms(),
        }
        Ok(head)
    }
}

/// The keys of submissions with these numbers and users, for [`Head::idempotency_keys`].
fn keys_by_user<'s>(
    submissions: impl Iterator<Item = (u64, &'s String, &'s Option<String>)>,
) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut keys: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (number, user, key) in submissions {
        if let Some(key) = key {
            keys.entry(user.clone()).or_default().insert(key.clone(), number);
        }
    }
    keys
}

impl Iterator for SnapshotParts {
    type Item = SnapshotPart;

    fn next(&mut self) -> Option<SnapshotPart> {
        let jobs = self.jobs.by_ref().take(self.size);
        let jobs: Vec<_> = jobs.map(|(id, job)| (id, unless_same(job, &mut self.before))).collect();
        let Some((last, _)) = jobs.last() else { return self.next_archived() };
        let submissions = from_fn(|| self.submissions.next_if(|(number, _)| *number <= last.number));
        let eligible = from_fn(|| self.eligible.next_if(|id| id <= last));
        let (submissions, eligible) = (submissions.collect(), eligible.collect());
        Some(SnapshotPart { submissions, eligible, jobs, archived: Vec::new() })
    }
}

impl SnapshotParts {
    /// A part with summaries of archived submissions, which come after all jobs.
    fn next_archived(&mut self) -> Option<SnapshotPart> {
        let archived: Vec<_> = self.archived.by_ref().take(self.size).collect();
        (!archived.is_empty()).then(|| SnapshotPart { archived, ..SnapshotPart::default() })
    }
}
