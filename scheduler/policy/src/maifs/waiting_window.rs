//! The window of waiting jobs that the agents choose from (section 3): the shortest, the oldest and the
//! widest of those that fit some node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Span, Time};

use crate::gittins::{PATIENCE, PATIENCE_BASE};
use crate::queue::unplaceable::UnplaceableDemands;
use crate::{FreeNodes, PendingJob, Profile, View};

/// How many of the shortest, of the oldest and of the widest jobs are in the window.
const SHORTEST: usize = 4;
const OLDEST: usize = 2;
const WIDEST: usize = 2;

/// K: the number of places in the window.
pub const WINDOW: usize = SHORTEST + OLDEST + WIDEST;

/// How many jobs of one order are looked at for the window.
const MOST_LOOKED_AT: usize = 64;

/// A job that waited for so many times the recent median, and for longer than [`patience`], comes first.
const OVERDUE: u64 = 10;

/// The waits of the last jobs that started, from which the median is taken.
const RECENT: usize = 50;

/// All waiting jobs, in the orders of the window. Larger priorities always come first.
#[derive(Debug, Default, Clone)]
pub(super) struct WaitingJobs {
    shortest: BTreeSet<(Reverse<i32>, u128, JobId)>,
    oldest: BTreeSet<(Reverse<i32>, Time, JobId)>,
    widest: BTreeSet<(Reverse<i32>, Reverse<u64>, u128, JobId)>,
    keys: BTreeMap<JobId, JobKeys>,
    recent_waits: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct JobKeys {
    priority: Reverse<i32>,
    work: u128,
    runtime: Span,
    eligible_at: Time,
    width: Reverse<u64>,
}

/// How long a job waits that is not served out of turn: as long as under `a-srpt` and `hybrid`.
fn patience(runtime: Span) -> Span {
    Span::from_secs_f64((PATIENCE_BASE + runtime).as_secs_f64() * PATIENCE)
}

impl WaitingJobs {
    pub(super) fn insert(&mut self, job: &PendingJob, profile: &Profile) {
        self.remove(job.id);
        let keys = JobKeys {
            priority: Reverse(job.priority),
            work: profile.work(),
            runtime: profile.runtime,
            eligible_at: job.eligible_at,
            width: Reverse(profile.milli),
        };
        self.shortest.insert((keys.priority, keys.work, job.id));
        self.oldest.insert((keys.priority, keys.eligible_at, job.id));
        self.widest.insert((keys.priority, keys.width, keys.work, job.id));
        self.keys.insert(job.id, keys);
    }

    pub(super) fn remove(&mut self, job: JobId) {
        let Some(keys) = self.keys.remove(&job) else { return };
        self.shortest.remove(&(keys.priority, keys.work, job));
        self.oldest.remove(&(keys.priority, keys.eligible_at, job));
        self.widest.remove(&(keys.priority, keys.width, keys.work, job));
    }

    /// A job has started.
    pub(super) fn started(&mut self, job: JobId, now: Time) {
        if let Some(keys) = self.keys.get(&job) {
            if self.recent_waits.len() == RECENT {
                self.recent_waits.remove(0);
            }
            self.recent_waits.push(now.since(keys.eligible_at));
        }
        self.remove(job);
    }

    /// The jobs in the order of their expected work.
    pub(super) fn shortest(&self) -> impl Iterator<Item = JobId> {
        self.shortest.iter().map(|(_, _, job)| *job)
    }

    /// The jobs of the window, each once, and whether the first one has to start, as it waits for too long.
    pub(super) fn window(
        &self,
        view: &View,
        free: &FreeNodes<'_>,
        unplaceable: &mut UnplaceableDemands,
        taken: &BTreeSet<JobId>,
        may_start: &mut dyn FnMut(JobId) -> bool,
    ) -> (Vec<JobId>, bool) {
        let mut window: Vec<JobId> = Vec::with_capacity(WINDOW);
        let usual = self.median_wait() * OVERDUE;
        let is_overdue =
            |since: Time, job: JobId| view.now.since(since) > usual.max(patience(self.keys[&job].runtime));
        let mut overdue = self
            .oldest_that_fit(view, free, unplaceable, taken)
            .filter(|(since, job)| is_overdue(*since, *job) && may_start(*job));
        window.extend(overdue.next().map(|(_, job)| job));
        drop(overdue);
        let is_first_due = !window.is_empty();
        let mut fill = |jobs: &mut dyn Iterator<Item = JobId>, places: usize| {
            let mut left = places;
            for job in jobs.take(MOST_LOOKED_AT) {
                if left == 0 || window.len() == WINDOW {
                    return;
                }
                if window.contains(&job)
                    || taken.contains(&job)
                    || !fits_somewhere(job, view, free, unplaceable)
                {
                    continue;
                }
                window.push(job);
                left -= 1;
            }
        };
        fill(&mut self.oldest.iter().map(|(_, _, job)| *job), OLDEST);
        fill(&mut self.widest.iter().map(|(_, _, _, job)| *job), WIDEST);
        fill(&mut self.shortest(), WINDOW);
        (window, is_first_due)
    }

    /// The median wait of the last jobs that started.
    fn median_wait(&self) -> Span {
        let mut waits = self.recent_waits.clone();
        waits.sort_unstable();
        waits.get(waits.len() / 2).copied().unwrap_or_default()
    }

    /// The oldest jobs that some node has room for, with the time since which they wait.
    fn oldest_that_fit<'a>(
        &'a self,
        view: &'a View,
        free: &'a FreeNodes<'_>,
        unplaceable: &'a mut UnplaceableDemands,
        taken: &'a BTreeSet<JobId>,
    ) -> impl Iterator<Item = (Time, JobId)> + 'a {
        let waiting = self.oldest.iter().map(|(_, since, job)| (*since, *job)).take(MOST_LOOKED_AT);
        waiting.filter(|(_, job)| !taken.contains(job) && fits_somewhere(*job, view, free, unplaceable))
    }
}

fn fits_somewhere(
    job: JobId,
    view: &View,
    free: &FreeNodes<'_>,
    unplaceable: &mut UnplaceableDemands,
) -> bool {
    let Some(demand) = view.pending.get(&job).map(|job| job.demand) else { return false };
    if unplaceable.covers(&demand) {
        return false;
    }
    let needed = demand.devices();
    let fits = free.nodes().any(|node| node.roomy_devices(&demand).is_some_and(|devices| devices >= needed));
    if !fits {
        unplaceable.insert(demand);
    }
    fits
}
