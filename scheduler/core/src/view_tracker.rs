//! What a policy sees of the head, and what of that changed since it last looked.
//!
//! Every change of a job or node is noted as it happens; `changes` turns the notes into changes of a
//! [`View`]. The cost grows with what changed, not with the size of the cluster.

use std::collections::BTreeSet;

use cohabit_policy::{PendingJob, RunPhase, RunningJob, View, ViewChange};
use cohabit_types::{Demand, JobId, NodeId, Share, Time};

use crate::head::Head;
use crate::volatile::{ClusterCapacity, PendingChanges};

/// Any number of jobs that claim nothing could start at once; this many of an array are shown, and started.
pub(crate) const MAX_STARTS_PER_PLAN: u64 = 1_000;

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

impl Head {
    /// Everything that a policy sees.
    pub fn view(&self, now: Time) -> View {
        let mut view = View { now, ..View::default() };
        view.apply(&self.collect_changes(self.all_changes()).0);
        view
    }

    /// What changed in the view since the last call; everything, after a start of the head.
    pub fn changes(&mut self) -> Vec<ViewChange> {
        let noted = std::mem::take(&mut self.volatile.pending_changes);
        let (changes, noted) = self.collect_changes(noted);
        self.volatile.pending_changes = noted;
        changes
    }

    /// The noted changes, and what must be remembered until the next call.
    fn collect_changes(&self, mut noted: PendingChanges) -> (Vec<ViewChange>, PendingChanges) {
        let mut changes: Vec<ViewChange> = noted.nodes.iter().map(|node| self.node_change(*node)).collect();
        let mut arrays = arrays_of(&noted.jobs);
        // Only how much is shown of arrays depends on all nodes.
        let shows_arrays = !noted.shown.is_empty() || !arrays.is_empty();
        let capacity = if shows_arrays { self.capacity() } else { noted.capacity };
        if capacity != noted.capacity {
            arrays.append(&mut arrays_of(&self.eligible));
        }
        let mut turned = BTreeSet::new();
        for array in arrays {
            let now_shown = self.window(array, capacity);
            let before = noted.shown.insert(array, now_shown.clone()).unwrap_or_default();
            turned.extend(now_shown.symmetric_difference(&before));
        }
        noted.shown.retain(|_, members| !members.is_empty());
        let shown = |job: &JobId| noted.shown.get(&job.number).is_some_and(|members| members.contains(job));
        let was_never_seen = |job: &JobId| {
            let unplaced = || self.jobs.get(job).is_some_and(|it| it.last_attempt().is_none());
            job.index.is_some() && !shown(job) && unplaced()
        };
        turned.extend(noted.jobs.iter().filter(|job| !was_never_seen(job)));
        let pending = |job: &JobId| self.eligible.contains(job) && (job.index.is_none() || shown(job));
        changes.extend(turned.iter().map(|job| match pending(job) {
            true => ViewChange::Pending(self.pending_job(*job)),
            false => self.running_job(*job).map_or(ViewChange::Gone(*job), ViewChange::Running),
        }));
        (changes, PendingChanges { shown: noted.shown, capacity, ..PendingChanges::default() })
    }

    /// The notes for a policy that has seen nothing yet.
    pub(crate) fn all_changes(&self) -> PendingChanges {
        let placed = self.nodes.values().flat_map(|node| node.jobs.iter());
        let jobs = self.eligible.iter().chain(placed).copied().collect();
        PendingChanges { jobs, nodes: self.nodes.keys().copied().collect(), ..PendingChanges::default() }
    }

    fn capacity(&self) -> ClusterCapacity {
        ClusterCapacity {
            devices: self.nodes.values().map(|node| node.devices.len() as u64).sum(),
            cpus: self.nodes.values().map(|node| u64::from(node.cpus)).sum(),
        }
    }

    /// The first eligible members of an array: as many as could possibly start at once, and those between
    /// them that were preempted. A preempted member must not hide the one for which it was stopped, or it
    /// would take its own place again.
    fn window(&self, array: u64, capacity: ClusterCapacity) -> BTreeSet<JobId> {
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

    fn node_change(&self, id: NodeId) -> ViewChange {
        let open = self.nodes.get(&id).filter(|node| node.takes_jobs());
        open.map_or(ViewChange::NodeGone(id), |node| ViewChange::Node(node.view(id)))
    }

    fn pending_job(&self, id: JobId) -> PendingJob {
        let job = &self.jobs[&id];
        let eligible_at = job.waiting().map_or(Time::EPOCH, |waiting| waiting.eligible_at);
        let submission = &self.submissions[&id.number];
        submission.pending(id, job, eligible_at, self.traits(id.number, submission))
    }

    fn running_job(&self, id: JobId) -> Option<RunningJob> {
        let job = self.jobs.get(&id)?;
        let attempt = job.live_attempt()?;
        let submission = &self.submissions[&id.number];
        let progress = self.volatile.progress.get(&id.attempt(attempt.number));
        let by_progress = progress.and_then(|it| Some(it.at + it.remaining()?));
        let by_expectation = attempt.expected_runtime.map(|span| attempt.started_at + span);
        Some(RunningJob {
            id,
            priority: submission.spec.priority,
            submitted_at: submission.submitted_at,
            started_at: attempt.started_at,
            demand: self.demand(id),
            placement: attempt.placement.clone(),
            phase: job.stop_requested().map_or(RunPhase::Running, |_| RunPhase::Stopping),
            ends_at: by_progress.or(by_expectation),
            traits: self.traits(id.number, submission),
        })
    }
}

/// The arrays that these jobs are members of.
fn arrays_of(jobs: &BTreeSet<JobId>) -> BTreeSet<u64> {
    jobs.iter().filter(|it| it.index.is_some()).map(|it| it.number).collect()
}
