//! The next member of an array takes the place of a short job of it that has ended, without a plan.
//!
//! A plan could decide nothing else: only members of this array wait, they are alike, and none of them fitted
//! anywhere before. For an array of many short jobs that saves a round through the policy and the journal
//! for each of them.

use cohabit_types::{JobId, Placement, Slowdown, Span, Time};

use crate::head::Head;
use crate::job::EndedAttempt;
use crate::placement::PlannedStart;
use crate::transition::Transition;

/// After a longer attempt a plan costs little beside it, and may know better by now how long such jobs run.
const LONGEST_ATTEMPT: Span = Span::from_secs(10);

/// The place that an attempt has left.
#[derive(Debug)]
pub(crate) struct LeftPlace {
    job: JobId,
    placement: Placement,
    started_at: Time,
    runtime: Option<Span>,
    slowdown: Option<Slowdown>,
    /// Whether it ran to its end and did what it was to do.
    has_succeeded: bool,
}

impl LeftPlace {
    pub(crate) fn of(job: JobId, ended: &EndedAttempt) -> LeftPlace {
        let EndedAttempt { attempt, .. } = ended;
        LeftPlace {
            job,
            placement: attempt.placement.clone(),
            started_at: attempt.started_at,
            runtime: attempt.expected_runtime,
            slowdown: attempt.predicted_slowdown,
            has_succeeded: attempt.first_failure.is_none() && ended.as_ref().effective_stop().is_none(),
        }
    }
}

impl Transition<'_> {
    /// Gives the places that attempts have left to the next members of their arrays; a plan decides about
    /// the others.
    pub(crate) fn fill_left_places(&mut self) {
        for place in std::mem::take(&mut self.left_places) {
            match self.head.successor(&place, self.now) {
                Some(next) => {
                    let LeftPlace { job, placement, runtime, slowdown, .. } = place;
                    let why = format!("takes the place of {job}: only members of its array wait");
                    self.start(next, PlannedStart { placement, runtime, slowdown, why });
                }
                None => self.head.replan_needed = true,
            }
        }
    }
}

impl Head {
    /// The job that takes this place without a plan, if there is one.
    fn successor(&self, place: &LeftPlace, now: Time) -> Option<JobId> {
        let is_settled = self.config.succession
            && place.has_succeeded
            && now.since(place.started_at) <= LONGEST_ATTEMPT
            && !self.replan_needed
            && self.open_plan_request.is_none()
            && self.volatile.fungible.is_empty()
            && self.reservations().next().is_none();
        let (first, last) = (self.eligible.first()?, self.eligible.last()?);
        let waits_alone = (first.number, last.number) == (place.job.number, place.job.number);
        if !is_settled || !waits_alone || first.index.is_none() || !self.is_exclusive(&place.placement) {
            return None;
        }
        let is_alike =
            self.jobs[first].last_attempt().is_none() && self.demand(*first) == self.demand(place.job);
        let is_allowed = self.submissions[&first.number].array_slots_left() > 0
            && self.beyond_running_limit(*first).is_none()
            && self.fits(&self.placeable_demand(*first), &place.placement, now).is_ok();
        (is_alike && is_allowed).then_some(*first)
    }

    /// Whether it is one place, on a device that nobody else uses: a policy may want to choose neighbours
    /// anew.
    fn is_exclusive(&self, placement: &Placement) -> bool {
        let [part] = &placement.parts[..] else { return false };
        let Some(node) = self.nodes.get(&part.node) else { return false };
        let mut devices = node.devices.iter().filter(|it| part.devices.contains(&it.device.id));
        part.devices.len() <= 1 && devices.all(|it| it.jobs.is_empty())
    }
}
