//! When the turn of each job is promised: every job also runs on the virtual machine of A-SRPT with the
//! estimate of its submission, and is due a constant factor later than it would be complete there.
//!
//! Nothing is decided here, and no placement plays a part. `promised_lane.rs` keeps the promises.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Span, Time};

use super::job::OrderedJob;
use crate::queue::capacity::Capacity;
use crate::queue::virtual_srpt_machine::VirtualSrptMachine;
use crate::{PendingJob, RunningJob, ViewChange};

/// After a restart of the head the nodes join one by one. Time before counts at the speed that the machine
/// starts with, so it starts this long after the first.
const NODES_JOIN: Span = Span::from_secs(60);

/// Jobs that no node can hold are looked at again after this time.
const SET_ASIDE: Span = Span::from_secs(300);

/// The due times of all live jobs that need devices.
#[derive(Debug, Clone)]
pub(super) struct PromisedTurns {
    factor: f64,
    machine: VirtualSrptMachine,
    capacity: Capacity,
    /// From when the machine works; unknown without devices.
    starts_at: Option<Time>,
    /// Jobs that the machine has not seen yet.
    unreleased: BTreeSet<(Time, JobId)>,
    jobs: BTreeMap<JobId, PromisedJob>,
    /// Jobs whose virtual turn came.
    due: BTreeSet<(Time, JobId)>,
    /// Jobs that no node can hold, and until when they are not looked at.
    aside: BTreeSet<JobId>,
    aside_until: Time,
}

#[derive(Debug, Clone, Copy)]
struct PromisedJob {
    arrived_at: Time,
    work: u128,
    due_at: Option<Time>,
}

impl PromisedTurns {
    /// Jobs are due `factor` times as long after their arrival as their virtual turns come.
    pub(super) fn new(factor: f64) -> PromisedTurns {
        PromisedTurns {
            factor,
            machine: VirtualSrptMachine::default(),
            capacity: Capacity::default(),
            starts_at: None,
            unreleased: BTreeSet::new(),
            jobs: BTreeMap::new(),
            due: BTreeSet::new(),
            aside: BTreeSet::new(),
            aside_until: Time::NEVER,
        }
    }

    /// Updates everything by changes that happened until now; `find` finds a job that waits or runs.
    pub(super) fn learn<'j>(
        &mut self,
        now: Time,
        changes: &[ViewChange],
        find: impl Fn(JobId) -> Option<&'j OrderedJob>,
    ) {
        let before = self.capacity.whole();
        self.capacity.learn(changes);
        if self.capacity.whole() != before {
            self.look_again();
        }
        let arrivals = self.arrivals(changes);
        self.find_start(now, arrivals.first().map(|(at, _)| *at));
        if self.machine.is_empty() {
            // Nothing was served at the old speed.
            self.machine.set_speed(self.capacity.whole());
        }
        for (at, job) in arrivals {
            if let Some(job) = find(job) {
                self.arrive(at.min(now), job);
            }
        }
        self.advance(now);
        self.machine.set_speed(self.capacity.whole());
        for change in changes {
            match change {
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Pending(PendingJob { id, .. }) | ViewChange::Running(RunningJob { id, .. }) => {
                    match find(*id) {
                        Some(job) if self.jobs.contains_key(id) => self.revise(job),
                        // It came back in the same moment in which it was gone.
                        Some(job) => self.arrive(now, job),
                        None => {}
                    }
                }
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
        self.advance(now);
    }

    /// With the first devices the machine starts, but a little later if jobs arrived long before.
    fn find_start(&mut self, now: Time, earliest: Option<Time>) {
        if self.starts_at.is_none() && self.capacity.whole() > 0 {
            let known = self.unreleased.first().map(|(at, _)| *at);
            let is_late = known.into_iter().chain(earliest).any(|at| at + NODES_JOIN <= now);
            self.starts_at = Some(if is_late { now + NODES_JOIN } else { now });
        }
    }

    /// New jobs in the order in which they could first have run.
    fn arrivals(&self, changes: &[ViewChange]) -> BTreeSet<(Time, JobId)> {
        let is_new = self.starts_at.is_none_or(|at| at > self.machine.now());
        let arrival = |change: &ViewChange| match change {
            // Since when a job could first run is not known any more once it ran.
            ViewChange::Pending(job) if is_new && job.attained.held > Span::ZERO => {
                Some((job.submitted_at, job.id))
            }
            ViewChange::Pending(job) => Some((job.eligible_at, job.id)),
            ViewChange::Running(job) => Some((job.submitted_at, job.id)),
            ViewChange::Gone(_) | ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {
                None
            }
        };
        changes.iter().filter_map(arrival).filter(|(_, job)| !self.jobs.contains_key(job)).collect()
    }

    fn arrive(&mut self, arrived_at: Time, job: &OrderedJob) {
        // A job without devices has no work here; its order follows from its rest alone.
        if job.profile.milli == 0 || self.jobs.contains_key(&job.id) {
            return;
        }
        let work = job.profile.least_work();
        self.jobs.insert(job.id, PromisedJob { arrived_at, work, due_at: None });
        self.unreleased.insert((arrived_at, job.id));
    }

    /// Lets the machine work until now.
    pub(super) fn advance(&mut self, now: Time) {
        if now >= self.aside_until {
            self.look_again();
        }
        if self.starts_at.is_none_or(|at| at > now) {
            return;
        }
        for (at, job) in std::mem::take(&mut self.unreleased) {
            self.serve(at);
            if let Some(work) = self.jobs.get(&job).map(|it| it.work) {
                self.machine.release(self.machine.now(), job, work);
            }
        }
        self.serve(now);
    }

    fn serve(&mut self, to: Time) {
        let mut turns = Vec::new();
        self.machine.advance(to, |job, at| turns.push((job, at)));
        for (job, at) in turns {
            let Some(promised) = self.jobs.get_mut(&job) else { continue };
            let virtually = at.since(promised.arrived_at).as_secs_f64();
            let due_at = promised.arrived_at + Span::from_secs_f64(self.factor * virtually);
            promised.due_at = Some(due_at);
            self.due.insert((due_at, job));
        }
    }

    /// The work of a job follows the nodes and its demand until its virtual turn has come.
    pub(super) fn revise(&mut self, job: &OrderedJob) {
        let Some(known) = self.jobs.get_mut(&job.id).filter(|known| known.due_at.is_none()) else { return };
        let work = job.profile.least_work();
        if known.work != work {
            known.work = work;
            self.machine.revise(job.id, work);
        }
    }

    fn forget(&mut self, job: JobId) {
        let Some(gone) = self.jobs.remove(&job) else { return };
        self.machine.remove(job);
        self.unreleased.remove(&(gone.arrived_at, job));
        self.aside.remove(&job);
        if let Some(due_at) = gone.due_at {
            self.due.remove(&(due_at, job));
        }
    }

    /// Jobs that no node can hold now are not in the way of others for a while.
    pub(super) fn set_aside(&mut self, jobs: &[JobId], now: Time) {
        for job in jobs {
            if let Some(due_at) = self.due_at(*job) {
                self.due.remove(&(due_at, *job));
                self.aside.insert(*job);
                self.aside_until = self.aside_until.min(now + SET_ASIDE);
            }
        }
    }

    fn look_again(&mut self) {
        for job in std::mem::take(&mut self.aside) {
            self.due.extend(self.due_at(job).map(|due_at| (due_at, job)));
        }
        self.aside_until = Time::NEVER;
    }

    /// When a job is due, if its virtual turn has come.
    pub(super) fn due_at(&self, job: JobId) -> Option<Time> {
        self.jobs.get(&job)?.due_at
    }

    /// Jobs that are due, the earliest first.
    pub(super) fn overdue(&self, now: Time) -> impl Iterator<Item = (Time, JobId)> {
        self.due.iter().copied().take_while(move |(due_at, _)| *due_at <= now)
    }

    /// When the next job may be due that is not: not before the next virtual turn.
    pub(super) fn next_due(&self, now: Time) -> Option<Time> {
        let after = (now + Span::from_micros(1), JobId::new(0));
        let due = self.due.range(after..).next().map(|(due_at, _)| *due_at);
        let start = self.starts_at.filter(|_| !self.unreleased.is_empty());
        due.into_iter().chain(start).chain(self.machine.next_completion()).min()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
            && self.due.is_empty()
            && self.unreleased.is_empty()
            && self.aside.is_empty()
            && self.machine.is_empty()
    }

    /// All devices in service, in thousandths of a device.
    pub(super) const fn devices_milli(&self) -> u64 {
        self.capacity.whole()
    }
}
