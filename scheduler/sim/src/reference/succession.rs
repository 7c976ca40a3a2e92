//! When the next member of an array may take the place of another one without a plan.

use cohabit_scheduler_core::Event;
use cohabit_types::{JobId, JobState, Report, Span};

use super::observed::ObservedAttempt;
use super::{HandledEvent, ReferenceModel};

/// After a longer attempt a plan decides.
const LONGEST_ATTEMPT: Span = Span::from_secs(10);

impl ReferenceModel {
    /// Why no attempt of this job may have been started by this event without a plan; `None` if it takes the
    /// place of a member of its array that has just succeeded, and nobody else waits.
    pub(super) fn why_no_successor(
        &self,
        it: &HandledEvent<'_>,
        id: JobId,
        attempt: &ObservedAttempt,
    ) -> Option<String> {
        let Event::Report(_, Report::Ended { rank, outcome, stopped: None, .. }) = it.event else {
            return Some("not by a plan".to_owned());
        };
        let before = rank.attempt.job;
        let is_of_array = self.config.succession && before.number == id.number && before != id;
        let place = self.jobs.get(&before).and_then(|job| job.observed.attempt(rank.attempt.attempt));
        let Some(place) = place.filter(|_| is_of_array && outcome.succeeded()) else {
            return Some("not by a plan, and no member of its array has just succeeded".to_owned());
        };
        let is_same_place = |of: &ObservedAttempt| match &of.ranks[..] {
            [rank] => Some((rank.node.clone(), rank.devices.clone(), rank.share)),
            _ => None,
        };
        let other =
            self.live.iter().find(|other| other.number != id.number && self.only_lacks_room(it, **other));
        match other {
            Some(other) => Some(format!("without a plan, although job {other} waits, too")),
            None if is_same_place(place).is_none() || is_same_place(place) != is_same_place(attempt) => {
                Some(format!("without a plan, and not at the place of {before}"))
            }
            None if it.at.since(place.started_at) > LONGEST_ATTEMPT => {
                Some(format!("without a plan, although {before} was no short job"))
            }
            None => None,
        }
    }

    /// Whether a job that never ran waits for nothing but room, as far as this model knows.
    pub(super) fn only_lacks_room(&self, it: &HandledEvent<'_>, id: JobId) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let begins = self.specs[&id.number].begin.is_none_or(|begin| begin <= it.at);
        job.observed.state == JobState::Pending
            && job.observed.attempts.is_empty()
            && !self.prefetched.contains_key(&id)
            && !job.requests.cancelled
            && !job.requests.held
            && begins
            && self.are_dependencies_met(id)
    }
}
