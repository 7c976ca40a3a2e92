//! The paper's instance A1: every job on a single machine as fast as all devices together, which always
//! serves the job with the least work left. A job's virtual turn comes when it completes here.
//!
//! All amounts are integers, so that no order depends on rounding: work in thousandths of a device times
//! microseconds, speed in thousandths of a device. Devices, placements and real ends play no part.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Time};

/// Shortest remaining processing time first, with preemption, on one machine.
///
/// A release, a removal and a completion cost O(log n): while time passes, only the front job's remaining
/// work changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct VirtualSrptMachine {
    now: Time,
    /// Work done in one microsecond.
    speed: u64,
    order: BTreeSet<VirtualJob>,
    tasks: BTreeMap<JobId, (VirtualJob, u128)>,
}

/// A job on the machine, in the order of service: the least work left, then the earliest arrival, then the
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VirtualJob {
    /// The work that is left.
    pub(crate) left: u128,
    /// When it arrived.
    pub(crate) released_at: Time,
    /// The job.
    pub(crate) job: JobId,
}

impl VirtualSrptMachine {
    /// Adds a job; one that is there already starts over. The machine must have advanced to `now`.
    pub(crate) fn release(&mut self, now: Time, job: JobId, work: u128) {
        self.remove(job);
        self.put(VirtualJob { left: work, released_at: now, job }, work);
    }

    /// Lets time pass and reports each job that completes, in order, with the end of the microsecond in
    /// which it does. The rest of that microsecond serves the next job.
    pub(crate) fn advance(&mut self, to: Time, mut completed: impl FnMut(JobId, Time)) {
        let budget = u128::from(self.speed) * u128::from(to.since(self.now).as_micros());
        let mut used = 0;
        while let Some(task) = self.order.first().copied() {
            if task.left > budget - used {
                self.serve(task, budget - used);
                break;
            }
            used += task.left;
            self.remove(task.job);
            completed(task.job, self.after(used));
        }
        self.now = self.now.max(to);
    }

    fn serve(&mut self, task: VirtualJob, amount: u128) {
        if amount > 0
            && let Some(work) = self.remove(task.job)
        {
            self.put(VirtualJob { left: task.left - amount, ..task }, work);
        }
    }

    fn put(&mut self, task: VirtualJob, work: u128) {
        self.order.insert(task);
        self.tasks.insert(task.job, (task, work));
    }

    /// Removes a job; returns its whole work, if it was there.
    pub(crate) fn remove(&mut self, job: JobId) -> Option<u128> {
        let (task, work) = self.tasks.remove(&job)?;
        self.order.remove(&task);
        Some(work)
    }

    /// Changes the whole work of a job; what was done of it stays done.
    pub(crate) fn revise(&mut self, job: JobId, work: u128) {
        if let Some((task, before)) = self.tasks.get(&job).copied() {
            let done = before - task.left;
            self.remove(job);
            self.put(VirtualJob { left: work.saturating_sub(done), ..task }, work);
        }
    }

    /// Sets the speed, in thousandths of a device; at 0 nothing moves. The machine must have advanced to the
    /// moment of the change.
    pub(crate) const fn set_speed(&mut self, milli: u64) {
        self.speed = milli;
    }

    /// When the next job completes if none arrives; `None` without jobs or without devices.
    pub(crate) fn next_completion(&self) -> Option<Time> {
        let task = self.order.first()?;
        (self.speed > 0 || task.left == 0).then(|| self.after(task.left))
    }

    /// All jobs in the order in which they complete if none arrives, and when; `None` without devices.
    pub(crate) fn list_completions(&self) -> impl Iterator<Item = (VirtualJob, Option<Time>)> {
        self.order.iter().scan(0, |used, task| {
            *used += task.left;
            let completes = self.speed > 0 || *used == 0;
            Some((*task, completes.then(|| self.after(*used))))
        })
    }

    /// The job that is served.
    pub(crate) fn front(&self) -> Option<VirtualJob> {
        self.order.first().copied()
    }

    /// The time up to which the machine has worked.
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// Whether there is no job.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The whole work of a job, and the job with what is left.
    pub(crate) fn work(&self, job: JobId) -> Option<(u128, VirtualJob)> {
        self.tasks.get(&job).map(|(task, work)| (*work, *task))
    }

    /// The end of the microsecond in which so much work is done.
    fn after(&self, work: u128) -> Time {
        let micros = work.div_ceil(u128::from(self.speed.max(1)));
        self.now + cohabit_types::Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}
