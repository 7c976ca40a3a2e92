//! The promise that EASY backfill makes to the first job without room: when it will start at the latest, if
//! everybody ends when expected, and who may pass it without breaking that promise.
//!
//! After D. Lifka, "The ANL/IBM SP scheduling system", 1995. Only the first job gets a promise.

use cohabit_types::{Demand, JobId, Placement, Time};

use super::fit_tracker::FitTracker;
use crate::{FreeNodes, View};

/// Room for one job at a time to come.
#[derive(Debug, Clone)]
pub(crate) struct Reservation<'v> {
    /// When the job finds room: the shadow time.
    pub(crate) at: Time,
    /// What is free then, before the job takes its part.
    then: FitTracker<'v>,
}

/// A job that starts in the plan being made.
#[derive(Debug, Clone)]
pub(crate) struct StartingJob<'j> {
    pub(crate) ends_at: Time,
    pub(crate) demand: &'j Demand,
    pub(crate) placement: Placement,
}

impl<'v> Reservation<'v> {
    /// The earliest room for a demand that has none now. `ends` are those of the running jobs of the view, in
    /// order; `None` if not even their last one makes room.
    pub(crate) fn new(
        demand: &Demand,
        free: &FreeNodes<'v>,
        view: &View,
        ends: impl Iterator<Item = (Time, JobId)>,
        starting: &[StartingJob<'_>],
    ) -> Option<Reservation<'v>> {
        let mut then = FitTracker::new(free.clone(), *demand);
        let mut starting: Vec<&StartingJob<'_>> = starting.iter().collect();
        starting.sort_by_key(|job| job.ends_at);
        let mut starting = starting.into_iter().peekable();
        let mut ends = ends.peekable();
        let mut at = view.now;
        loop {
            let next_start = starting.peek().map(|job| job.ends_at);
            let next_end = ends.peek().map(|(at, _)| *at);
            let next = next_start.into_iter().chain(next_end).min();
            // All that comes free at one moment counts, also what the job itself does not need.
            if then.fits() && next.is_none_or(|next| next > at) {
                return Some(Reservation { at, then });
            }
            at = next?;
            if let Some(job) = starting.next_if(|job| job.ends_at == at) {
                then.give_back(job.demand, &job.placement);
            } else if let Some(running) = ends.next().and_then(|(_, job)| view.running.get(&job)) {
                then.give_back(&running.demand, &running.placement);
            }
        }
    }

    /// Whether a job may start there now that ends then; if so, it is counted with.
    pub(crate) fn admits(&mut self, demand: &Demand, placement: &Placement, ends_at: Time) -> bool {
        if ends_at <= self.at {
            return true;
        }
        self.then.take(demand, placement);
        if !self.then.fits() {
            self.then.give_back(demand, placement);
            return false;
        }
        true
    }
}
