//! What the policy last said about the jobs: when those in the queue start and end, and how much those on the
//! same devices slow each other down. It shapes answers and nothing else, so the shell keeps it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use cohabit_policy::{JobForecast, QueueForecast};
use cohabit_types::{ColocationSlowdown, JobId};

use crate::expected_start::ExpectedRun;
use crate::head::Head;

/// The policy's latest forecasts and slowdowns.
#[derive(Debug, Default, Clone)]
pub struct PolicyForecasts {
    /// Where each job is in the queue.
    places: BTreeMap<JobId, usize>,
    pub(crate) queue: QueueForecast,
    slowdowns: BTreeMap<JobId, ColocationSlowdown>,
    /// When jobs of the queue start and end, once that was asked for. It holds for as long as the forecasts
    /// do, which is a moment.
    pub(crate) runs: OnceCell<BTreeMap<JobId, ExpectedRun>>,
}

impl PolicyForecasts {
    /// Forecasts of queued jobs, and slowdowns of jobs that share devices.
    #[must_use]
    pub fn new(queue: QueueForecast, slowdowns: Vec<ColocationSlowdown>) -> PolicyForecasts {
        PolicyForecasts {
            places: queue.jobs.iter().enumerate().map(|(place, it)| (it.job, place)).collect(),
            queue,
            slowdowns: slowdowns.into_iter().map(|it| (it.job, it)).collect(),
            runs: OnceCell::new(),
        }
    }

    /// Drops the forecasts of jobs that have changed.
    pub fn forget(&mut self, changed: &BTreeSet<JobId>) {
        // The larger side may have a member for each of a huge array.
        if changed.len() > self.places.len() {
            self.places.retain(|job, _| !changed.contains(job));
        } else {
            changed.iter().for_each(|job| _ = self.places.remove(job));
        }
    }

    /// Whether they cover every job that the policy can see now. Of an array it does not see every member,
    /// and of a limited user only the jobs that may start.
    #[must_use]
    pub fn cover(&self, head: &Head) -> bool {
        let of_limited_users = head.user_windows();
        let is_seen = |job: &&JobId| match head.limited_user(job.number) {
            None => !head.is_store(job.number),
            Some(_) => of_limited_users.contains(job),
        };
        plain_jobs(&head.eligible).filter(is_seen).all(|job| self.places.contains_key(job))
            && self.cover_shared_devices(head)
    }

    /// Whether the slowdown of every job that shares a device is known, apart from nodes that the policy does
    /// not see.
    fn cover_shared_devices(&self, head: &Head) -> bool {
        let seen = head.nodes.values().filter(|node| node.takes_jobs());
        seen.flat_map(|node| &node.devices).filter(|device| device.jobs.len() > 1).all(|device| {
            device.jobs.iter().all(|id| {
                let others: Vec<JobId> = device.jobs.iter().copied().filter(|it| it != id).collect();
                self.slowdown(*id).is_some_and(|it| is_by(it, &others))
            })
        })
    }

    pub(crate) fn job(&self, id: JobId) -> Option<&JobForecast> {
        self.places.get(&id).map(|place| &self.queue.jobs[*place])
    }

    pub(crate) fn slowdown(&self, id: JobId) -> Option<&ColocationSlowdown> {
        self.slowdowns.get(&id)
    }
}

/// The jobs that are not members of arrays. It jumps over the members, of which there may be many.
fn plain_jobs(eligible: &BTreeSet<JobId>) -> impl Iterator<Item = &JobId> {
    let mut rest = eligible.range(..);
    std::iter::from_fn(move || {
        loop {
            let job = rest.next()?;
            if job.index.is_none() {
                return Some(job);
            }
            let last_member = JobId::member(job.number, u32::MAX);
            rest = eligible.range((Bound::Excluded(last_member), Bound::Unbounded));
        }
    })
}

/// Whether the slowdown is by exactly these jobs.
pub(crate) fn is_by(slowdown: &ColocationSlowdown, others: &[JobId]) -> bool {
    slowdown.beside.len() == others.len() && others.iter().all(|other| slowdown.beside.contains(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_jobs_are_found_between_arrays() {
        let members = |number, count| (0..count).map(move |index| JobId::member(number, index));
        let last = [JobId::member(4, u32::MAX), JobId::new(5)];
        let eligible = [JobId::new(1), JobId::new(3)].into_iter().chain(members(2, 50)).chain(members(4, 3));
        let eligible: BTreeSet<JobId> = eligible.chain(last).collect();
        let expected: Vec<JobId> = eligible.iter().copied().filter(|job| job.index.is_none()).collect();
        assert_eq!(plain_jobs(&eligible).copied().collect::<Vec<_>>(), expected);
        assert_eq!(expected.len(), 3);
    }
}
