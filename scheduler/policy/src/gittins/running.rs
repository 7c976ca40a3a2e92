//! The jobs that run: how long each has worked, and when it passes the end of its bin.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use cohabit_types::{JobId, Span, Time};

use super::bins::{self, BINS};
use super::job::{JobRank, OrderedJob, ReportedWork};
use crate::RunPhase;

/// A job that holds devices.
#[derive(Debug, Clone)]
pub(super) struct RunningEntry {
    pub(super) job: OrderedJob,
    pub(super) started_at: Time,
    pub(super) phase: RunPhase,
    /// Work time for each second, at most 1.
    pub(super) speed: f64,
    pub(super) rank: JobRank,
    /// Whether it started because it had waited too long.
    pub(super) in_lane: bool,
}

/// All running jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningJobs {
    jobs: BTreeMap<JobId, RunningEntry>,
    /// When each job passes the end of its bin.
    crossings: BTreeSet<(Time, JobId)>,
    crossing_of: BTreeMap<JobId, Time>,
    /// The typical rest of each, in seconds. These three are apart because every plan goes through them all.
    typical_rests: BTreeMap<JobId, f64>,
    /// Those in the lane.
    lane: BTreeSet<JobId>,
    /// Those that were told to stop.
    stopping: BTreeSet<JobId>,
}

impl RunningEntry {
    /// For how long it has worked, over all attempts from which it continued, in seconds.
    pub(super) fn age(&self, now: Time) -> f64 {
        self.job.worked() + now.since(self.started_at).as_secs_f64() * self.speed
    }

    /// The work time at which its time limit ends it, in seconds.
    pub(super) fn limit(&self) -> f64 {
        self.job.worked() + self.job.limit * self.speed
    }

    /// When it passes the end of its bin; `None` where nothing more is counted of it.
    fn next_crossing(&self) -> Option<Time> {
        if self.job.counted >= BINS || self.job.reported != ReportedWork::Nothing {
            return None;
        }
        let left = bins::start_of(self.job.counted + 1) - self.job.worked();
        Some(self.started_at + Span::from_secs_f64((left / self.speed).max(0.0)))
    }
}

impl RunningJobs {
    pub(super) fn insert(&mut self, entry: RunningEntry) {
        let id = entry.job.id;
        self.remove(id);
        if let Some(at) = entry.next_crossing() {
            self.crossings.insert((at, id));
            self.crossing_of.insert(id, at);
        }
        self.typical_rests.insert(id, entry.rank.rest.typical);
        if entry.in_lane {
            self.lane.insert(id);
        }
        if entry.phase == RunPhase::Stopping {
            self.stopping.insert(id);
        }
        self.jobs.insert(id, entry);
    }

    pub(super) fn remove(&mut self, job: JobId) -> Option<RunningEntry> {
        if let Some(at) = self.crossing_of.remove(&job) {
            self.crossings.remove(&(at, job));
        }
        self.typical_rests.remove(&job);
        self.lane.remove(&job);
        self.stopping.remove(&job);
        self.jobs.remove(&job)
    }

    /// Takes out the next job that has passed the end of its bin.
    pub(super) fn take_crossing(&mut self, now: Time) -> Option<RunningEntry> {
        let (_, job) = self.crossings.first().copied().filter(|(at, _)| *at <= now)?;
        self.remove(job)
    }

    /// When the next job passes the end of its bin.
    pub(super) fn next_crossing(&self) -> Option<Time> {
        self.crossings.first().map(|(at, _)| *at)
    }

    pub(super) fn get(&self, job: JobId) -> Option<&RunningEntry> {
        self.jobs.get(&job)
    }

    /// What the order knows of a job.
    pub(super) fn job_mut(&mut self, job: JobId) -> Option<&mut OrderedJob> {
        self.jobs.get_mut(&job).map(|entry| &mut entry.job)
    }

    pub(super) fn set_rank(&mut self, job: JobId, rank: JobRank) {
        if let Some(entry) = self.jobs.get_mut(&job) {
            entry.rank = rank;
            self.typical_rests.insert(job, rank.rest.typical);
        }
    }

    /// Puts a job into the lane; `false` if it does not run.
    pub(super) fn enter_lane(&mut self, job: JobId) -> bool {
        let entry = self.jobs.get_mut(&job);
        let runs = entry.is_some();
        if let Some(entry) = entry {
            entry.in_lane = true;
            self.lane.insert(job);
        }
        runs
    }

    /// The jobs of the lane.
    pub(super) fn in_lane(&self) -> impl Iterator<Item = &RunningEntry> {
        self.lane.iter().filter_map(|job| self.jobs.get(job))
    }

    /// The jobs that were told to stop.
    pub(super) fn stopping(&self) -> impl Iterator<Item = JobId> {
        self.stopping.iter().copied()
    }

    /// The typical rest of each job, in seconds.
    pub(super) fn typical_rests(&self) -> impl Iterator<Item = f64> {
        self.typical_rests.values().copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RunningEntry> {
        self.jobs.values()
    }

    /// The `most` jobs after this one, and from the first on again.
    pub(super) fn next_jobs(&self, after: Option<JobId>, most: usize) -> Vec<JobId> {
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let further = self.jobs.range((behind, Bound::Unbounded));
        let all = further.chain(self.jobs.iter()).map(|(id, _)| *id);
        all.take(most.min(self.jobs.len())).collect()
    }
}
