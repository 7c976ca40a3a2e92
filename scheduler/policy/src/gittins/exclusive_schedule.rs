//! The schedule that the same jobs would have if each had its devices alone and none was stopped: the
//! measure of whether sharing delays a job.
//!
//! Only numbers of devices count, not where they are. A job that still runs in the real cluster has no known
//! end here either; once it has ended there, it ends here after as much work. So the schedule is right in
//! hindsight, and an expectation until then.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Span, Time};

use crate::queue::PriorityKey;

/// Jobs that may wait; beyond, those with the largest keys are forgotten.
const MAX_WAITING: usize = 20_000;

/// Waiting jobs whose place in the queue counts; for the others, what waits before them is what these need.
const MAX_AHEAD: usize = 512;

/// The schedule.
#[derive(Debug, Clone, Default)]
pub(super) struct ExclusiveSchedule {
    jobs: BTreeMap<JobId, ExclusiveJob>,
    /// In order, with what each needs.
    waiting: BTreeMap<(PriorityKey, JobId), u64>,
    /// Jobs that run and whose work is known, by their end.
    ends: BTreeSet<(Time, JobId)>,
    /// Thousandths of devices.
    all: u64,
    free: i64,
    ahead: AheadInQueue,
}

/// How much waits before a job, in thousandths of devices.
#[derive(Debug, Clone, Default)]
struct AheadInQueue {
    /// Before each of the first jobs, in their order.
    first: Vec<((PriorityKey, JobId), u64)>,
    /// Before all others: what the first ones need.
    others: u64,
}

#[derive(Debug, Clone, Copy)]
struct ExclusiveJob {
    key: PriorityKey,
    milli: u64,
    /// Its work in seconds, once it has ended.
    work: Option<f64>,
    started_at: Option<Time>,
}

impl ExclusiveSchedule {
    /// Sets the number of devices, and lets time pass.
    pub(super) fn advance(&mut self, now: Time, devices: u64) {
        let all = devices * 1_000;
        self.free += all as i64 - self.all as i64;
        self.all = all;
        let mut at = now;
        while let Some((end, job)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.pop_first();
            if let Some(ended) = self.jobs.remove(&job) {
                self.free += ended.milli as i64;
            }
            at = end;
            self.start_waiting(at);
        }
        self.start_waiting(at.max(now));
    }

    /// Starts what fits, in order.
    fn start_waiting(&mut self, at: Time) {
        let mut passed = 0;
        let mut starting = Vec::new();
        for ((key, job), milli) in &self.waiting {
            if self.free <= 0 || passed >= MAX_AHEAD {
                break;
            }
            if *milli as i64 > self.free {
                passed += 1;
                continue;
            }
            self.free -= *milli as i64;
            starting.push((*key, *job));
        }
        for (key, job) in starting {
            self.waiting.remove(&(key, job));
            let Some(found) = self.jobs.get_mut(&job) else { continue };
            found.started_at = Some(at);
            if let Some(work) = found.work {
                self.ends.insert((at + Span::from_secs_f64(work), job));
            }
        }
    }

    /// A job arrives that needs devices.
    pub(super) fn arrive(&mut self, job: JobId, milli: u64, key: PriorityKey) {
        if milli == 0 || self.jobs.contains_key(&job) {
            return;
        }
        self.jobs.insert(job, ExclusiveJob { key, milli, work: None, started_at: None });
        self.waiting.insert((key, job), milli);
        if self.waiting.len() > MAX_WAITING
            && let Some(((_, forgotten), _)) = self.waiting.pop_last()
        {
            self.jobs.remove(&forgotten);
        }
    }

    /// A job runs that was never seen waiting: after a restart of the head.
    pub(super) fn resume(&mut self, job: JobId, milli: u64, key: PriorityKey, started_at: Time) {
        if milli == 0 || self.jobs.contains_key(&job) {
            return;
        }
        self.free -= milli as i64;
        self.jobs.insert(job, ExclusiveJob { key, milli, work: None, started_at: Some(started_at) });
    }

    /// A job has ended after this work, in seconds.
    pub(super) fn end(&mut self, job: JobId, work: f64) {
        let Some(found) = self.jobs.get_mut(&job) else { return };
        found.work = Some(work);
        if let Some(at) = found.started_at {
            self.ends.insert((at + Span::from_secs_f64(work), job));
        }
    }

    /// A job is gone that never ran.
    pub(super) fn forget(&mut self, job: JobId) {
        if let Some(found) = self.jobs.remove(&job) {
            match found.started_at {
                Some(_) => self.free += found.milli as i64,
                None => drop(self.waiting.remove(&(found.key, job))),
            }
        }
    }

    /// Sums up what waits before each job, for [`ExclusiveSchedule::ends_in`].
    pub(super) fn sum_waiting(&mut self) {
        let mut ahead = AheadInQueue::default();
        for (place, milli) in self.waiting.iter().take(MAX_AHEAD) {
            ahead.first.push((*place, ahead.others));
            ahead.others += milli;
        }
        self.ahead = ahead;
    }

    /// In how many seconds a live job is expected to end, given its whole work and the usual rest of running
    /// jobs, both in seconds; `None` where the job is not known. What waits before it is that of the last
    /// [`ExclusiveSchedule::sum_waiting`].
    pub(super) fn ends_in(&self, job: JobId, work: f64, usual_rest: f64, now: Time) -> Option<f64> {
        let found = self.jobs.get(&job)?;
        if let Some(at) = found.started_at {
            return Some((work - now.since(at).as_secs_f64()).max(0.0));
        }
        let place = self.ahead.first.binary_search_by_key(&(found.key, job), |(place, _)| *place);
        let ahead = place.map_or(self.ahead.others, |place| self.ahead.first[place].1);
        let wait = (ahead + found.milli) as f64 / self.all.max(1) as f64 * usual_rest;
        Some(wait + work)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::EPOCH + Span::from_secs(seconds)
    }

    fn key(rank: u128) -> PriorityKey {
        (Reverse(0), rank, at(0))
    }

    #[test]
    fn jobs_run_alone_in_order_and_end_after_their_work() {
        let mut schedule = ExclusiveSchedule::default();
        let job = JobId::new;
        schedule.arrive(job(1), 1_000, key(1));
        schedule.arrive(job(2), 1_000, key(3));
        schedule.arrive(job(3), 1_000, key(2));
        schedule.advance(at(0), 1);
        schedule.sum_waiting();
        assert_eq!(schedule.ends_in(job(1), 100.0, 50.0, at(40)), Some(60.0));
        assert_eq!(schedule.ends_in(job(3), 10.0, 50.0, at(40)), Some(60.0));
        assert_eq!(schedule.ends_in(job(2), 10.0, 50.0, at(40)), Some(110.0));
        // In the real cluster the first one ended at 150, slowed down by neighbors, after 100 s of work.
        schedule.end(job(1), 100.0);
        schedule.advance(at(150), 1);
        schedule.sum_waiting();
        assert_eq!(schedule.ends_in(job(1), 100.0, 50.0, at(150)), None);
        assert_eq!(schedule.ends_in(job(3), 60.0, 50.0, at(150)), Some(10.0), "it started at 100");
        schedule.forget(job(3));
        schedule.advance(at(160), 1);
        schedule.sum_waiting();
        assert_eq!(schedule.ends_in(job(2), 30.0, 50.0, at(170)), Some(20.0));
    }

    #[test]
    fn a_job_that_does_not_fit_is_passed() {
        let mut schedule = ExclusiveSchedule::default();
        schedule.arrive(JobId::new(1), 1_000, key(1));
        schedule.arrive(JobId::new(2), 2_000, key(2));
        schedule.arrive(JobId::new(3), 1_000, key(3));
        schedule.advance(at(0), 2);
        schedule.sum_waiting();
        assert_eq!(schedule.ends_in(JobId::new(3), 10.0, 0.0, at(0)), Some(10.0));
        assert!(schedule.ends_in(JobId::new(2), 10.0, 100.0, at(0)) > Some(10.0));
    }
}
