//! When running jobs are expected to end.
//!
//! By their own progress where they report any, else by their estimate. A job that should have ended already
//! is expected to take another tenth of the time that it took so far, again and again. Plans must not depend
//! on these times being right.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Span, Time};

use crate::{RunPhase, RunningJob};

/// The least time that an overdue job is expected to take.
const MIN_OVERRUN: Span = Span::from_secs(1);

/// When a job with this expected runtime ends; always after `now`.
pub(crate) fn estimate_end(job: &RunningJob, runtime: Span, now: Time) -> Time {
    ExpectedEnd::of(job, runtime, now).extend_if_overdue(now).at
}

/// The expected end of one job.
#[derive(Debug, Clone, Copy)]
struct ExpectedEnd {
    at: Time,
    /// When it started, or was told to stop.
    since: Time,
}

impl ExpectedEnd {
    fn of(job: &RunningJob, runtime: Span, now: Time) -> ExpectedEnd {
        match job.phase {
            RunPhase::Running => {
                ExpectedEnd { at: job.ends_at.unwrap_or(job.started_at + runtime), since: job.started_at }
            }
            RunPhase::Stopping => ExpectedEnd { at: now, since: now },
        }
    }

    fn extend_if_overdue(self, now: Time) -> ExpectedEnd {
        let tenth = Span::from_micros(now.since(self.since).as_micros() / 10);
        let later = now + tenth.max(MIN_OVERRUN);
        ExpectedEnd { at: if self.at > now { self.at } else { later }, ..self }
    }
}

/// The expected ends of all running jobs, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct ExpectedEnds {
    due: BTreeMap<JobId, ExpectedEnd>,
    order: BTreeSet<(Time, JobId)>,
}

impl ExpectedEnds {
    /// Adds a running job, or updates it.
    pub(crate) fn insert(&mut self, job: &RunningJob, runtime: Span, now: Time) {
        self.put(job.id, ExpectedEnd::of(job, runtime, now).extend_if_overdue(now));
    }

    pub(crate) fn remove(&mut self, job: JobId) {
        if let Some(due) = self.due.remove(&job) {
            self.order.remove(&(due.at, job));
        }
    }

    /// All jobs with their ends after `now`, the earliest first.
    pub(crate) fn after(&mut self, now: Time) -> impl Iterator<Item = (Time, JobId)> {
        while let Some((_, job)) = self.order.first().copied().filter(|(at, _)| *at <= now) {
            let due = self.due[&job];
            self.put(job, due.extend_if_overdue(now));
        }
        self.order.iter().copied()
    }

    fn put(&mut self, job: JobId, due: ExpectedEnd) {
        self.remove(job);
        self.due.insert(job, due);
        self.order.insert((due.at, job));
    }
}
