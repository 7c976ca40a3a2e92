//! What a policy may see of the head, and what of it changed since it last looked.
//!
//! Every change of a job or node is noted as it happens; the next look turns the notes into changes of a
//! [`View`]. A look costs what changed, not what there is.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::{PendingJob, RunPhase, RunningJob, View, ViewChange};
use cohabit_types::{Demand, JobId, NodeId, Share, Time};

use crate::head::Head;

/// Jobs that claim nothing could start without end; so many of an array are shown, and started, at once.
pub(crate) const MAX_STARTS_PER_PLAN: u64 = 1_000;

/// What changed since the policy last looked.
#[derive(Debug, Default, Clone)]
pub(crate) struct PendingChanges {
    jobs: BTreeSet<JobId>,
    nodes: BTreeSet<NodeId>,
    /// The pending members that it was shown of each array.
    shown: BTreeMap<u64, BTreeSet<JobId>>,
    /// All devices and cores when it last looked: how much of an array is shown depends on them.
    capacity: Capacity,
}

/// What all nodes together have.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Capacity {
    devices: u64,
    cpus: u64,
}

impl PendingChanges {
    pub(crate) fn note_job(&mut self, job: JobId) {
        self.jobs.insert(job);
    }

    pub(crate) fn note_node(&mut self, node: NodeId) {
        self.nodes.insert(node);
    }
}

impl Capacity {
    /// No more jobs with this demand than this could start at once, whatever is free.
    fn most_at_once(self, demand: &Demand) -> u64 {
        match (demand.total_milli(), demand.cpus) {
            (0, 0) => MAX_STARTS_PER_PLAN,
            (0, cores) => (self.cpus / u64::from(cores)).max(1),
            (share, _) => (self.devices * u64::from(Share::WHOLE.0) / share).max(1),
        }
    }
}

impl Head {
    /// All that a policy may see.
    pub fn view(&self, now: Time) -> View {
        let mut view = View { now, ..View::default() };
        view.apply(&self.collect_changes(self.all_changes()).0);
        view
    }

    /// What changed of the view since the last call; after a start of the head, everything.
    pub fn changes(&mut self) -> Vec<ViewChange> {
        let sight = std::mem::take(&mut self.live.sight);
        let (changes, sight) = self.collect_changes(sight);
        self.live.sight = sight;
        changes
    }

    /// The noted changes, and what is to be remembered until the next look.
    fn collect_changes(&self, mut sight: PendingChanges) -> (Vec<ViewChange>, PendingChanges) {
        let mut changes: Vec<ViewChange> = sight.nodes.iter().map(|node| self.node_change(*node)).collect();
        let mut arrays = arrays_of(&sight.jobs);
        // Only of arrays it depends on all nodes how much is shown.
        let shows_arrays = !sight.shown.is_empty() || !arrays.is_empty();
        let capacity = if shows_arrays { self.capacity() } else { sight.capacity };
        if capacity != sight.capacity {
            arrays.append(&mut arrays_of(&self.eligible));
        }
        let mut turned = BTreeSet::new();
        for array in arrays {
            let now_shown = self.window(array, capacity);
            let before = sight.shown.insert(array, now_shown.clone()).unwrap_or_default();
            turned.extend(now_shown.symmetric_difference(&before));
        }
        sight.shown.retain(|_, members| !members.is_empty());
        let shown = |job: &JobId| sight.shown.get(&job.number).is_some_and(|members| members.contains(job));
        let was_never_seen = |job: &JobId| {
            let unplaced = || self.jobs.get(job).is_some_and(|it| it.attempts.is_empty());
            job.index.is_some() && !shown(job) && unplaced()
        };
        turned.extend(sight.jobs.iter().filter(|job| !was_never_seen(job)));
        let pending = |job: &JobId| self.eligible.contains(job) && (job.index.is_none() || shown(job));
        changes.extend(turned.iter().map(|job| match pending(job) {
            true => ViewChange::Pending(self.pending_job(*job)),
            false => self.running_job(*job).map_or(ViewChange::Gone(*job), ViewChange::Running),
        }));
        (changes, PendingChanges { shown: sight.shown, capacity, ..PendingChanges::default() })
    }

    /// Nothing was seen yet.
    pub(crate) fn all_changes(&self) -> PendingChanges {
        let placed = self.nodes.values().flat_map(|node| node.jobs.iter());
        let jobs = self.eligible.iter().chain(placed).copied().collect();
        PendingChanges { jobs, nodes: self.nodes.keys().copied().collect(), ..PendingChanges::default() }
    }

    fn capacity(&self) -> Capacity {
        Capacity {
            devices: self.nodes.values().map(|node| node.devices.len() as u64).sum(),
            cpus: self.nodes.values().map(|node| u64::from(node.cpus)).sum(),
        }
    }

    /// The first waiting members of an array: so many as could possibly start at once, and between them those
    /// that the policy itself stopped last. One that was stopped for another must not hide it, or it would
    /// take its own place again.
    fn window(&self, array: u64, capacity: Capacity) -> BTreeSet<JobId> {
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
        self.submissions[&id.number].pending(id, job, job.eligible_at)
    }

    fn running_job(&self, id: JobId) -> Option<RunningJob> {
        let attempt = self.jobs.get(&id)?.live_attempt()?;
        let submission = &self.submissions[&id.number];
        let progress = self.live.progress.get(&id.attempt(attempt.number));
        let by_progress = progress.and_then(|it| Some(it.at + it.remaining()?));
        let by_expectation = attempt.expected.map(|span| attempt.started_at + span);
        Some(RunningJob {
            id,
            priority: submission.spec.priority,
            submitted_at: submission.submitted_at,
            started_at: attempt.started_at,
            demand: self.demand(id),
            placement: attempt.placement.clone(),
            phase: attempt.stopping.map_or(RunPhase::Running, |_| RunPhase::Stopping),
            ends_at: by_progress.or(by_expectation),
            traits: submission.traits(),
        })
    }
}

/// The arrays of which there are members among these jobs.
fn arrays_of(jobs: &BTreeSet<JobId>) -> BTreeSet<u64> {
    jobs.iter().filter(|it| it.index.is_some()).map(|it| it.number).collect()
}
