//! The reservation of EASY backfill: when the first job that does not fit starts at the latest, if all jobs
//! end when expected, and which jobs may start before it without delaying it.
//!
//! After D. Lifka, "The ANL/IBM SP scheduling system", 1995. Only one job gets a reservation.

use cohabit_types::{Demand, JobId, Placement, Time};

use super::fit_tracker::FitTracker;
use crate::{FreeNodes, View};

/// Resources for one job at a future time.
#[derive(Debug, Clone)]
pub(crate) struct Reservation<'v> {
    /// When the job fits: the shadow time.
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
    /// The earliest time at which a demand fits that does not fit now. `ends` are the expected ends of the
    /// view's running jobs, in order; `None` if the demand does not fit even after the last one.
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
            // Everything that is released at one moment counts, also what the job does not need.
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

    /// Whether a job may start now with this placement and this end; if so, it is counted from now on.
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
