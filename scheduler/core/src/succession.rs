//! The next member of an array takes the place of a short job of it that has ended, without a plan.
//!
//! A plan could decide nothing else: only members of this array wait, they are alike, and none of them fitted
//! anywhere before. For an array of many short jobs that saves a round through the policy and the journal
//! for each of them.

use cohabit_types::{JobId, Placement, Slowdown, Span, Time};

use crate::head::Head;
use crate::job::EndedAttempt;
use crate::node::DeviceUse;
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
    /// The job that was ordered in advance, and has taken it.
    follower: Option<JobId>,
}

impl LeftPlace {
    pub(crate) fn of(job: JobId, ended: &EndedAttempt, follower: Option<JobId>) -> LeftPlace {
        let EndedAttempt { attempt, .. } = ended;
        LeftPlace {
            job,
            placement: attempt.placement.clone(),
            started_at: attempt.started_at,
            runtime: attempt.expected_runtime,
            slowdown: attempt.predicted_slowdown,
            follower,
            has_succeeded: attempt.first_failure.is_none() && ended.as_ref().effective_stop().is_none(),
        }
    }
}

impl Transition<'_> {
    /// Gives the places that attempts have left to the next members of their arrays; a plan decides about
    /// the others.
    pub(crate) fn fill_left_places(&mut self) {
        for place in std::mem::take(&mut self.left_places) {
            let lasted = self.now.since(place.started_at);
            match self.next_at(place) {
                Some(next) => self.prefetch_behind(next, lasted),
                None => self.head.replan_needed = true,
            }
        }
    }

    /// The job that has this place now without a plan, if one does.
    fn next_at(&mut self, place: LeftPlace) -> Option<JobId> {
        if place.follower.is_some() {
            return place.follower;
        }
        let next = self.head.successor(&place, self.now)?;
        let LeftPlace { job, placement, runtime, slowdown, .. } = place;
        let why = format!("takes the place of {job}: only members of its array wait");
        self.start(next, PlannedStart { placement, runtime, slowdown, why });
        Some(next)
    }
}

impl Head {
    /// The job that takes this place without a plan, if there is one.
    fn successor(&self, place: &LeftPlace, now: Time) -> Option<JobId> {
        let is_short = place.has_succeeded && now.since(place.started_at) <= LONGEST_ATTEMPT;
        if !is_short || !self.waits_alone(place.job.number) || !self.is_exclusive(&place.placement, None) {
            return None;
        }
        let first = *self.eligible.first()?;
        let is_allowed = self.submissions[&first.number].array_slots_left() > 0
            && self.beyond_running_limit(first).is_none()
            && self.fits(&self.placeable_demand(first), &place.placement, now).is_ok();
        (self.is_alike(first, place.job) && is_allowed).then_some(first)
    }

    /// Whether a plan could choose only among members of this array: nobody else waits, and nothing but an
    /// end can change what runs.
    pub(crate) fn waits_alone(&self, number: u64) -> bool {
        let is_member = |id: &JobId| id.number == number && id.index.is_some();
        self.config.succession
            && !self.replan_needed
            && self.open_plan_request.is_none()
            && self.volatile.fungible.is_empty()
            && self.reservations().next().is_none()
            && self.eligible.first().is_some_and(is_member)
            && self.eligible.last().is_some_and(is_member)
    }

    /// Whether a job that never ran demands what another one does.
    pub(crate) fn is_alike(&self, next: JobId, before: JobId) -> bool {
        self.jobs[&next].last_attempt().is_none() && self.demand(next) == self.demand(before)
    }

    /// Whether it is one place, on a device that nobody uses but this job: a policy may want to choose
    /// neighbours anew.
    pub(crate) fn is_exclusive(&self, placement: &Placement, holder: Option<JobId>) -> bool {
        let [part] = &placement.parts[..] else { return false };
        let Some(node) = self.nodes.get(&part.node) else { return false };
        let mut devices = node.devices.iter().filter(|it| part.devices.contains(&it.device.id));
        let is_alone = |it: &DeviceUse| it.jobs.iter().all(|job| Some(*job) == holder);
        part.devices.len() <= 1 && devices.all(is_alone)
    }
}
