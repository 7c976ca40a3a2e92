//! What a policy sees of the head, and what of that changed since it last looked.
//!
//! [`Head::handle`] returns the ids of what it changed; a [`ViewTracker`] collects them and turns them into
//! changes of a [`View`]. The cost grows with what changed, not with the size of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::{PendingJob, RunPhase, RunningJob, View, ViewChange};
use cohabit_types::{Demand, JobId, NodeId, Share, ShareTable, Time};

use crate::head::Head;
use crate::interface::ChangedIds;

/// Any number of jobs that claim nothing could start at once; this many of an array are shown, and started.
pub(crate) const MAX_STARTS_PER_PLAN: u64 = 1_000;

/// What one policy has seen of a head, and what has changed since.
#[derive(Debug, Default, Clone)]
pub struct ViewTracker {
    changed: ChangedIds,
    /// The pending members that it was shown of each array whose user is not limited.
    shown: BTreeMap<u64, BTreeSet<JobId>>,
    /// The pending jobs that it was shown of each limited user.
    shown_of_users: BTreeMap<String, BTreeSet<JobId>>,
    /// The capacity when it last looked: how much of an array is shown depends on it.
    capacity: ClusterCapacity,
    /// The table of fair share that it knows.
    table: Option<Arc<ShareTable>>,
    /// The table by which users were limited when it last looked.
    limits: Option<Arc<ShareTable>>,
    /// The minute in which it last looked.
    minute: u64,
}

/// What all nodes together have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterCapacity {
    devices: u64,
    cpus: u64,
}

impl ClusterCapacity {
    /// An upper bound of how many jobs with this demand could start at once on an idle cluster.
    fn most_at_once(self, demand: &Demand) -> u64 {
        match (demand.total_milli(), demand.cpus) {
            (0, 0) => MAX_STARTS_PER_PLAN,
            (0, cores) => (self.cpus / u64::from(cores)).max(1),
            (share, _) => (self.devices * u64::from(Share::WHOLE.0) / share).max(1),
        }
    }
}

impl ViewTracker {
    /// Notes what an event changed.
    pub fn note(&mut self, mut changed: ChangedIds) {
        // The ids of a huge array are not moved one by one.
        if changed.jobs.len() > self.changed.jobs.len() {
            std::mem::swap(&mut changed.jobs, &mut self.changed.jobs);
        }
        self.changed.jobs.extend(changed.jobs);
        self.changed.nodes.extend(changed.nodes);
    }

    /// What changed in the view since the last call. After the first event of a start that is everything.
    pub fn changes(&mut self, head: &Head, now: Time) -> Vec<ViewChange> {
        let ChangedIds { mut jobs, mut nodes } = std::mem::take(&mut self.changed);
        nodes.extend(self.closing_nodes(head, now));
        let mut seen = BTreeSet::new();
        if self.limits.as_ref().is_some_and(|limits| !Arc::ptr_eq(limits, head.shares.table())) {
            // Under another table other users are limited: what is shown of all is chosen anew.
            let shown = std::mem::take(&mut self.shown).into_values();
            seen.extend(shown.chain(std::mem::take(&mut self.shown_of_users).into_values()).flatten());
            jobs.extend(&seen);
        }
        self.limits = Some(Arc::clone(head.shares.table()));
        let mut changes = head.share_changes(&mut self.table, jobs.iter().copied());
        changes.extend(nodes.iter().map(|node| head.node_change(*node, now)));
        let mut turned = self.choose_windows(head, &jobs);
        let was_never_seen = |job: &JobId| {
            let unplaced = || head.jobs.get(job).is_some_and(|it| it.last_attempt().is_none());
            job.index.is_some() && !seen.contains(job) && !self.shows(head, job) && unplaced()
        };
        turned.extend(jobs.into_iter().filter(|job| !was_never_seen(job)));
        let pending = |job: &JobId| head.eligible.contains(job) && self.shows(head, job);
        changes.extend(turned.iter().map(|job| match pending(job) {
            true => ViewChange::Pending(head.pending_job(*job)),
            false => head.running_job(*job).map_or(ViewChange::Gone(*job), ViewChange::Running),
        }));
        changes
    }

    /// The nodes that will be reserved: how soon, a policy is told once a minute.
    fn closing_nodes(&mut self, head: &Head, now: Time) -> Vec<NodeId> {
        let minute = now.as_micros() / 60_000_000;
        if head.reservations().next().is_none() || std::mem::replace(&mut self.minute, minute) == minute {
            return Vec::new();
        }
        head.nodes.iter().filter(|(_, node)| head.has_windows(&node.name)).map(|(id, _)| *id).collect()
    }

    /// Whether a job is shown while it is eligible: not a store, which starts without a plan.
    fn shows(&self, head: &Head, job: &JobId) -> bool {
        if head.is_store(job.number) {
            return false;
        }
        let window = match head.limited_user(job.number) {
            Some(user) => self.shown_of_users.get(user),
            None if job.index.is_none() => return true,
            None => self.shown.get(&job.number),
        };
        window.is_some_and(|shown| shown.contains(job))
    }

    /// Chooses anew how much is shown of the arrays and the limited users of these jobs, and of all if the
    /// capacity has changed. Returns the jobs that are shown now and were not, or the other way round.
    fn choose_windows(&mut self, head: &Head, changed: &BTreeSet<JobId>) -> BTreeSet<JobId> {
        let (mut arrays, mut users) = (arrays_of(changed), head.limited_users_of(changed));
        // Only how much is shown of arrays depends on all nodes.
        if self.shown.is_empty() && self.shown_of_users.is_empty() && arrays.is_empty() && users.is_empty() {
            return BTreeSet::new();
        }
        let capacity = head.capacity();
        if capacity != self.capacity {
            self.capacity = capacity;
            arrays.append(&mut arrays_of(&head.eligible));
            users.extend(head.volatile.user_queues.users());
        }
        let mut turned = BTreeSet::new();
        for array in arrays.into_iter().filter(|array| head.limited_user(*array).is_none()) {
            let now_shown = head.window(array, capacity);
            let before = self.shown.insert(array, now_shown.clone()).unwrap_or_default();
            turned.extend(now_shown.symmetric_difference(&before));
        }
        for user in users {
            let now_shown = head.user_window(user, capacity);
            let before = self.shown_of_users.insert(user.to_owned(), now_shown.clone()).unwrap_or_default();
            turned.extend(now_shown.symmetric_difference(&before));
        }
        self.shown.retain(|_, members| !members.is_empty());
        self.shown_of_users.retain(|_, jobs| !jobs.is_empty());
        turned
    }
}

impl Head {
    /// Everything that a policy sees.
    pub fn view(&self, now: Time) -> View {
        let mut tracker = ViewTracker { changed: self.all_ids(), ..ViewTracker::default() };
        let mut view = View { now, ..View::default() };
        view.apply(&tracker.changes(self, now));
        view
    }

    /// The ids of all that a policy sees.
    pub(crate) fn all_ids(&self) -> ChangedIds {
        let placed = self.nodes.values().flat_map(|node| node.jobs.iter());
        let jobs = self.eligible.iter().chain(placed).copied().collect();
        ChangedIds { jobs, nodes: self.nodes.keys().copied().collect() }
    }

    pub(crate) fn capacity(&self) -> ClusterCapacity {
        ClusterCapacity {
            devices: self.nodes.values().map(|node| node.devices.len() as u64).sum(),
            cpus: self.nodes.values().map(|node| u64::from(node.cpus)).sum(),
        }
    }

    /// The first eligible members of an array: as many as could possibly start at once, and those between
    /// them that were preempted. A preempted member must not hide the one for which it was stopped, or it
    /// would take its own place again. Of any other submission: its job, if that is eligible.
    pub(crate) fn window(&self, array: u64, capacity: ClusterCapacity) -> BTreeSet<JobId> {
        let Some(submission) = self.submissions.get(&array) else { return BTreeSet::new() };
        let most = capacity.most_at_once(&submission.spec.demand);
        let mut others = 0;
        let within = |member: &&JobId| {
            others += u64::from(!self.jobs[*member].was_preempted());
            others <= most
        };
        let members = JobId::new(array)..=JobId::member(array, u32::MAX);
        let array_slots_left = submission.array_slots_left() as usize;
        self.eligible.range(members).take(array_slots_left).take_while(within).copied().collect()
    }

    fn node_change(&self, id: NodeId, now: Time) -> ViewChange {
        let open = self.nodes.get(&id).filter(|node| node.takes_jobs());
        open.map_or(ViewChange::NodeGone(id), |node| ViewChange::Node(self.node_view_at(id, node, now)))
    }

    fn pending_job(&self, id: JobId) -> PendingJob {
        let job = &self.jobs[&id];
        let eligible_at = job.waiting().map_or(Time::EPOCH, |waiting| waiting.eligible_at);
        let submission = &self.submissions[&id.number];
        let demand = self.with_constraints(submission, job.demand(submission));
        submission.pending(id, job, eligible_at, self.traits(id.number, submission), demand)
    }

    fn running_job(&self, id: JobId) -> Option<RunningJob> {
        let job = self.jobs.get(&id)?;
        let attempt = job.live_attempt()?;
        let progress = self.volatile.progress.get(&id.attempt(attempt.number));
        let by_progress = progress.and_then(|it| Some(it.at + it.remaining()?));
        let by_expectation = attempt.expected_runtime.map(|span| attempt.started_at + span);
        let placed = self.pending_job(id).placed(attempt.placement.clone(), attempt.started_at);
        Some(RunningJob {
            phase: job.stop_requested().map_or(RunPhase::Running, |_| RunPhase::Stopping),
            ends_at: by_progress.or(by_expectation),
            reported_end: by_progress,
            allotted_at: attempt.allotted_at.unwrap_or(attempt.started_at),
            steps: progress.map(|it| (it.step, it.at)),
            holds: attempt.holds,
            reclaimable_from: job.reclaimable_from(),
            idle_from: self.idle_from(id),
            allotting: attempt.ordered_allotment.as_ref().map(|ordered| ordered.to),
            ..placed
        })
    }
}

/// The arrays that these jobs are members of.
fn arrays_of(jobs: &BTreeSet<JobId>) -> BTreeSet<u64> {
    jobs.iter().filter(|it| it.index.is_some()).map(|it| it.number).collect()
}
