//! What A-SRPT knows of each job, kept by the changes: it is on the virtual machine until its virtual turn
//! comes, then in the queue until it starts.
//!
//! A job that loses its devices goes back to the queue with the turn that it had. Nothing is decided here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Span, Time};

use super::delay_rule::DelayRule;
use super::delayed_jobs::DelayedJobs;
use super::recent_waits::RecentWaits;
use super::{ASrptOptions, QueueOrder, VirtualAlpha};
use crate::mapping::Toggle;
use crate::queue::QueuedJob;
use crate::queue::capacity::Capacity;
use crate::queue::expected_ends::ExpectedEnds;
use crate::queue::virtual_srpt_machine::VirtualSrptMachine;
use crate::{
    ClassKey, ClusterChange, PendingJob, PendingQueue, Placer, Profile, RunningJob, View, ViewChange,
};

/// The order of the queue: larger priorities first, then by turn, then the earlier submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueKey {
    priority: Reverse<i32>,
    turn: Turn,
    submitted_at: Time,
}

/// What jobs of one priority are ordered by; those whose turn has not come go last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// The time of its virtual turn, which has come.
    Came(Time),
    /// Its expected runtime; its virtual turn has come.
    Length(Span),
    /// The work that is left before its virtual turn.
    Ahead(u128),
}

/// What is known of a job.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// What is expected of it.
    pub(super) profile: Profile,
    /// Its class.
    pub(super) class_key: ClassKey,
    /// When it could first have run.
    pub(super) arrived_at: Time,
    /// The time of its virtual turn (`q_i`), if it has come.
    pub(super) turn_at: Option<Time>,
    /// Since when it waits in the queue; meaningless before its turn.
    pub(super) queued_at: Time,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
}

impl std::ops::Index<JobId> for QueueState {
    type Output = Entry;
    fn index(&self, job: JobId) -> &Entry {
        &self.entries[&job]
    }
}

/// All jobs, and the two orders through which they pass.
#[derive(Debug, Clone)]
pub(super) struct QueueState {
    virtual_alpha: VirtualAlpha,
    virtual_machine: Toggle,
    queue_order: QueueOrder,
    eager_start: Toggle,
    pub(super) capacity: Capacity,
    pub(super) machine: VirtualSrptMachine,
    pub(super) queue: PendingQueue<QueueKey>,
    pub(super) waits: RecentWaits,
    pub(super) delayed_jobs: DelayedJobs,
    /// When running jobs are expected to end.
    pub(super) ends: ExpectedEnds,
    entries: BTreeMap<JobId, Entry>,
}

impl QueueState {
    pub(super) fn new(options: &ASrptOptions) -> QueueState {
        QueueState {
            virtual_alpha: options.virtual_alpha,
            virtual_machine: options.virtual_machine,
            queue_order: match options.virtual_machine {
                Toggle::On => options.queue_order,
                Toggle::Off => QueueOrder::Duration,
            },
            eager_start: options.eager_start,
            capacity: Capacity::default(),
            machine: VirtualSrptMachine::default(),
            queue: PendingQueue::default(),
            waits: RecentWaits::default(),
            delayed_jobs: DelayedJobs::new(DelayRule::new(options)),
            ends: ExpectedEnds::default(),
            entries: BTreeMap::new(),
        }
    }

    /// What is known of a job.
    #[cfg(test)]
    pub(super) fn get(&self, job: JobId) -> Option<&Entry> {
        self.entries.get(&job)
    }

    /// Applies the changes up to the time of the view: arrivals at their own times, everything else at that
    /// time.
    pub(super) fn learn(&mut self, view: &View, changes: &[ViewChange], placer: &mut impl Placer) {
        placer.learn(view, changes);
        let cluster = placer.prepare(view);
        self.capacity.learn(changes);
        if self.machine.is_empty() {
            // Nothing was served at the old speed, and a new policy learns of jobs that arrived long ago.
            self.machine.set_speed(self.capacity.whole());
        }
        if cluster == ClusterChange::Changed {
            self.refresh_profiles(view, placer);
        }
        self.release_arrivals(view, changes, placer);
        self.advance(view, view.now);
        self.machine.set_speed(self.capacity.whole());
        for change in changes {
            match change {
                ViewChange::Pending(job) => self.note_pending(view, job, placer),
                ViewChange::Running(job) => self.note_running(view, job, placer),
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    /// After a change of the nodes the profiles of pending jobs may change. A turn that has come stays.
    fn refresh_profiles(&mut self, view: &View, placer: &mut impl Placer) {
        for job in view.pending.values() {
            let Some(entry) = self.entries.get_mut(&job.id) else { continue };
            entry.profile = placer.profile(&job.demand, &job.traits);
            entry.class_key = placer.class_key(&job.demand, &job.traits, &entry.profile);
            self.machine.revise(job.id, compute_virtual_work(&entry.profile, self.virtual_alpha));
            self.enqueue(job, view);
        }
    }

    /// New jobs enter the virtual machine in the order in which they could first have run.
    fn release_arrivals(&mut self, view: &View, changes: &[ViewChange], placer: &mut impl Placer) {
        let arrival = |change: &ViewChange| match change {
            ViewChange::Pending(job) if !self.entries.contains_key(&job.id) => {
                view.pending.get(&job.id).map(|job| (job.eligible_at, job.id))
            }
            ViewChange::Pending(_)
            | ViewChange::Running(_)
            | ViewChange::Gone(_)
            | ViewChange::Node(_)
            | ViewChange::NodeGone(_)
            | ViewChange::Shares(_) => None,
        };
        let arrivals: BTreeSet<(Time, JobId)> = changes.iter().filter_map(arrival).collect();
        for (at, job) in arrivals {
            self.advance(view, at.min(view.now));
            self.release(view, &view.pending[&job], placer);
        }
    }

    /// Lets the virtual machine work; jobs whose turn comes enter the queue.
    pub(super) fn advance(&mut self, view: &View, to: Time) {
        let mut turns = Vec::new();
        self.machine.advance(to, |job, at| turns.push((job, at)));
        for (job, at) in turns {
            self.note_turn(job, at);
            if let Some(job) = view.pending.get(&job) {
                self.enqueue(job, view);
            }
        }
        self.requeue_front(view);
    }

    fn note_turn(&mut self, job: JobId, at: Time) {
        if let Some(entry) = self.entries.get_mut(&job) {
            entry.turn_at = Some(at);
            entry.queued_at = entry.queued_at.max(at);
        }
    }

    /// Jobs that may start before their turn are ordered by the work that is left, which shrinks for the
    /// front job.
    fn requeue_front(&mut self, view: &View) {
        if self.eager_start == Toggle::On
            && let Some(job) = self.machine.front().and_then(|task| view.pending.get(&task.job))
        {
            self.enqueue(job, view);
        }
    }

    fn release(&mut self, view: &View, job: &PendingJob, placer: &mut impl Placer) {
        let profile = placer.profile(&job.demand, &job.traits);
        let class_key = placer.class_key(&job.demand, &job.traits, &profile);
        let arrived_at = job.eligible_at;
        let work = compute_virtual_work(&profile, self.virtual_alpha);
        let phase = Phase::Waiting;
        let entry = Entry { profile, class_key, arrived_at, turn_at: None, queued_at: arrived_at, phase };
        self.entries.insert(job.id, entry);
        match self.virtual_machine {
            Toggle::On => self.machine.release(self.machine.now().max(arrived_at), job.id, work),
            Toggle::Off => self.note_turn(job.id, arrived_at),
        }
        self.enqueue(job, view);
        // A job without work has its turn at once.
        self.advance(view, self.machine.now());
    }

    /// Puts a job into the queue, if it may be there.
    fn enqueue(&mut self, job: &PendingJob, view: &View) {
        let Some(entry) = self.entries.get(&job.id).filter(|entry| entry.phase == Phase::Waiting) else {
            return;
        };
        let turn = match (entry.turn_at, self.queue_order, self.eager_start) {
            (Some(_), QueueOrder::Duration, _) => Turn::Length(entry.profile.runtime),
            (Some(at), QueueOrder::Turn, _) => Turn::Came(at),
            (None, _, Toggle::On) => Turn::Ahead(self.machine.work(job.id).map_or(0, |(_, task)| task.left)),
            (None, _, Toggle::Off) => return,
        };
        let key = QueueKey { priority: Reverse(job.priority), turn, submitted_at: job.submitted_at };
        self.delayed_jobs.record_waiting(&entry.class_key, &entry.profile, entry.queued_at);
        self.queue.insert(&QueuedJob::of(job, view), entry.class_key.clone(), key);
    }

    /// A job is pending. One that ran keeps its turn, and waits from the moment at which it lost its
    /// devices.
    fn note_pending(&mut self, view: &View, job: &PendingJob, placer: &mut impl Placer) {
        let Some(entry) = self.entries.get_mut(&job.id) else {
            return self.release(view, job, placer);
        };
        if entry.phase == Phase::Running {
            entry.phase = Phase::Waiting;
            entry.queued_at = entry.queued_at.max(job.eligible_at);
            self.ends.remove(job.id);
        }
        self.enqueue(job, view);
    }

    fn note_running(&mut self, view: &View, job: &RunningJob, placer: &mut impl Placer) {
        self.queue.remove(job.id);
        match self.entries.get_mut(&job.id) {
            Some(entry) => {
                if entry.phase == Phase::Waiting {
                    self.waits.note(job.started_at.since(entry.queued_at));
                }
                entry.phase = Phase::Running;
            }
            // It ran before this policy existed, so its turn had come by then.
            None => {
                let profile = placer.profile(&job.demand, &job.traits);
                let class_key = placer.class_key(&job.demand, &job.traits, &profile);
                let at = job.started_at;
                let phase = Phase::Running;
                let entry =
                    Entry { profile, class_key, arrived_at: at, turn_at: Some(at), queued_at: at, phase };
                self.entries.insert(job.id, entry);
            }
        }
        let profile = &self.entries[&job.id].profile;
        let slowdown = placer.slowdown(profile, &job.placement);
        self.ends.insert(job, profile.runtime_at(slowdown), view.now);
    }

    fn forget(&mut self, job: JobId) {
        self.queue.remove(job);
        self.ends.remove(job);
        self.machine.remove(job);
        self.entries.remove(&job);
    }
}

/// The work of a job on the virtual machine (`G * p'_i`), in thousandths of a device times microseconds.
pub(super) fn compute_virtual_work(profile: &Profile, alpha: VirtualAlpha) -> u128 {
    let Some(bounds) = profile.bounds else { return profile.work() };
    match alpha {
        VirtualAlpha::HeavyEdge => profile.work(),
        VirtualAlpha::Max => profile.work_at(bounds.slowest / bounds.fastest),
        VirtualAlpha::LowerBound => profile.least_work(),
    }
}
