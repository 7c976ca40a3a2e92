//! The jobs for which others were told to stop: what becomes free is kept for them until they start.
//!
//! Claims are not saved. After a restart of the head, what becomes free goes by turns, and the one who
//! claimed it is still the one with the smallest part.

use std::collections::BTreeSet;

use cohabit_fair_share::Party;
use cohabit_types::{Demand, JobId, Placement, Span, Time};

use crate::{RunPhase, View};

/// Room is kept for so long after the last of the stopped jobs has ended.
pub(super) const KEPT_AFTERWARDS: Span = Span::from_secs(5 * 60);
/// Room is kept for so long at most, if one of them does not end.
const KEPT_AT_MOST: Span = Span::from_secs(30 * 60);

/// A job for which others were told to stop.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoomClaim {
    pub(super) job: JobId,
    pub(super) party: Party,
    pub(super) demand: Demand,
    /// Where it would go.
    pub(super) placement: Placement,
    /// The jobs that were told to stop, and have not ended.
    pub(super) victims: BTreeSet<JobId>,
    /// The room is kept until then.
    pub(super) until: Time,
    /// Whether all of them have ended.
    pub(super) is_free: bool,
    /// Whether they were really told, as far as the next view shows.
    pub(super) is_confirmed: bool,
}

impl RoomClaim {
    pub(super) fn until_at_most(now: Time) -> Time {
        now + KEPT_AT_MOST
    }

    /// The jobs that were told to stop and have not ended.
    pub(super) fn stopping(&self, view: &View) -> impl Iterator<Item = JobId> {
        let stops = |job: &JobId| view.running.get(job).is_some_and(|it| it.phase == RunPhase::Stopping);
        self.victims.iter().copied().filter(stops)
    }

    /// Takes note of what has ended; returns whether room is still kept.
    pub(super) fn update(&mut self, view: &View) -> bool {
        let runs_on = |job| view.running.get(job).is_some_and(|it| it.phase == RunPhase::Running);
        if !self.is_confirmed && self.victims.iter().any(runs_on) {
            // A stop was no longer possible.
            return false;
        }
        self.is_confirmed = true;
        // One that has ended may run again elsewhere.
        self.victims = self.stopping(view).collect();
        if !self.is_free && self.victims.is_empty() {
            self.is_free = true;
            self.until = self.until.min(view.now + KEPT_AFTERWARDS);
        }
        view.pending.contains_key(&self.job) && view.now < self.until
    }
}
