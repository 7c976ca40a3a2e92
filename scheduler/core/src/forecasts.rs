//! What the policy last said about the jobs: when those in the queue start and end, and how much those on the
//! same devices slow each other down. It shapes answers and nothing else, so the shell keeps it.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::JobForecast;
use cohabit_types::{ColocationSlowdown, JobId};

use crate::head::Head;

/// The policy's latest forecasts and slowdowns.
#[derive(Debug, Default, Clone)]
pub struct PolicyForecasts {
    jobs: BTreeMap<JobId, JobForecast>,
    slowdowns: BTreeMap<JobId, ColocationSlowdown>,
}

impl PolicyForecasts {
    /// Forecasts of queued jobs, and slowdowns of jobs that share devices.
    #[must_use]
    pub fn new(forecasts: Vec<JobForecast>, slowdowns: Vec<ColocationSlowdown>) -> PolicyForecasts {
        PolicyForecasts {
            jobs: forecasts.into_iter().map(|it| (it.job, it)).collect(),
            slowdowns: slowdowns.into_iter().map(|it| (it.job, it)).collect(),
        }
    }

    /// Drops the forecasts of jobs that have changed.
    pub fn forget(&mut self, changed: &BTreeSet<JobId>) {
        for job in changed {
            self.jobs.remove(job);
        }
    }

    /// Whether they cover every job that the policy can see now. Of an array it does not see every member.
    #[must_use]
    pub fn cover(&self, head: &Head) -> bool {
        let mut plain = head.eligible.iter().filter(|job| job.index.is_none());
        plain.all(|job| self.jobs.contains_key(job)) && self.cover_shared_devices(head)
    }

    /// Whether the slowdown of every job that shares a device is known, apart from nodes that the policy does
    /// not see.
    fn cover_shared_devices(&self, head: &Head) -> bool {
        let seen = head.nodes.values().filter(|node| node.takes_jobs());
        seen.flat_map(|node| &node.devices).filter(|device| device.jobs.len() > 1).all(|device| {
            device.jobs.iter().all(|id| {
                let others: Vec<JobId> = device.jobs.iter().copied().filter(|it| it != id).collect();
                self.slowdown_beside(*id, &others).is_some()
            })
        })
    }

    pub(crate) fn job(&self, id: JobId) -> Option<&JobForecast> {
        self.jobs.get(&id)
    }

    pub(crate) fn slowdown(&self, id: JobId) -> Option<&ColocationSlowdown> {
        self.slowdowns.get(&id)
    }

    /// The slowdown of a job by exactly these others.
    pub(crate) fn slowdown_beside(&self, id: JobId, others: &[JobId]) -> Option<&ColocationSlowdown> {
        let is_by_them = |it: &&ColocationSlowdown| {
            it.beside.len() == others.len() && others.iter().all(|other| it.beside.contains(other))
        };
        self.slowdown(id).filter(is_by_them)
    }
}
