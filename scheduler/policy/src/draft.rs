//! A pipeline's plan in the making: what is free by now, who starts, and for whom room is reserved.
//!
//! It is made for one plan and then forgotten; nothing in it changes the pipeline's books.

use std::collections::BTreeSet;

use cohabit_types::{Demand, JobId, Span, Time};

use crate::ends::Ends;
use crate::reservation::{Reservation, Starting};
use crate::without_room::WithoutRoom;
use crate::{Discipline, FreeNodes, PendingJob, Place, Plan, Profile, Proposal, View};

/// A plan in the making.
pub(crate) struct Draft<'v> {
    view: &'v View,
    discipline: Discipline,
    free: FreeNodes<'v>,
    plan: Plan,
    starting: Vec<Starting<'v>>,
    without_room: WithoutRoom,
    /// Made for the first job without room.
    reservation: Option<Reservation<'v>>,
    /// Demands of jobs that were refused because they would still run when the reservation begins.
    refused: BTreeSet<Demand>,
}

/// Whose turn it may be after a job.
pub(crate) enum Next {
    /// That of those behind it.
    Others,
    /// That of those behind it in other classes.
    OtherClasses,
    /// Nobody's.
    Nobody,
}

impl<'v> Draft<'v> {
    pub(crate) fn new(view: &'v View, discipline: Discipline) -> Draft<'v> {
        Draft {
            view,
            discipline,
            free: FreeNodes::new(&view.nodes),
            plan: Plan::default(),
            starting: Vec::new(),
            without_room: WithoutRoom::default(),
            reservation: None,
            refused: BTreeSet::new(),
        }
    }

    pub(crate) fn into_plan(self) -> Plan {
        self.plan
    }

    /// Looks for room for the job whose turn it is; says what that means for those behind it. `ends` are
    /// those of the running jobs.
    pub(crate) fn consider(
        &mut self,
        job: JobId,
        profile: &Profile,
        place: &mut impl Place,
        ends: &mut Ends,
    ) -> Next {
        let job = &self.view.pending[&job];
        if self.refuses(&job.demand, profile.runtime) {
            let shortest_alike = Span::from_micros(1 << octave(profile.runtime));
            let all_alike = self.refuses(&job.demand, shortest_alike);
            return if all_alike { Next::OtherClasses } else { Next::Others };
        }
        if !self.without_room.covers(&job.demand)
            && let Some(next) = self.try_place(job, profile, place)
        {
            return next;
        }
        self.without_room.insert(job.demand);
        match self.discipline {
            Discipline::Strict if self.free.could_hold_when_empty(&job.demand) => Next::Nobody,
            Discipline::Strict | Discipline::WorkConserving => Next::OtherClasses,
            Discipline::Backfill => {
                self.reserve(job, ends);
                Next::OtherClasses
            }
        }
    }

    /// Whose turn it may be if the job found room; nothing if it found none.
    fn try_place(&mut self, job: &'v PendingJob, profile: &Profile, place: &mut impl Place) -> Option<Next> {
        match place.place(job, profile, &self.free) {
            Ok(proposal) => self.start(job, profile, proposal),
            Err(shortage) if shortage.is_its_own() => {}
            Err(_) => return None,
        }
        Some(Next::Others)
    }

    /// Reserves room for a job that has none, if it is the first; says when there will be some.
    pub(crate) fn reserve(&mut self, job: &PendingJob, ends: &mut Ends) -> Option<Time> {
        if self.reservation.is_none() && self.free.could_hold_when_empty(&job.demand) {
            let ends = ends.after(self.view.now);
            self.reservation = Reservation::new(&job.demand, &self.free, self.view, ends, &self.starting);
        }
        self.reservation.as_ref().map(|reservation| reservation.at)
    }

    /// Whether a job of this runtime would be in the way of the reservation, as another with its demand was.
    fn refuses(&self, demand: &Demand, runtime: Span) -> bool {
        let lasts = |it: &Reservation<'_>| self.view.now + runtime > it.at;
        self.reservation.as_ref().is_some_and(lasts) && self.refused.contains(demand)
    }

    fn start(&mut self, job: &'v PendingJob, profile: &Profile, proposal: Proposal) {
        let placement = proposal.placement.clone();
        let ends_at = self.view.now + profile.runtime_at(proposal.slowdown);
        let admitted = match &mut self.reservation {
            Some(reservation) => reservation.admits(&job.demand, &placement, ends_at),
            None => true,
        };
        if !admitted {
            self.refused.insert(job.demand);
            return;
        }
        self.free.settle(job.id, &job.demand, &placement);
        self.plan.actions.push(proposal.start(job.id, profile));
        self.starting.push(Starting { ends_at, demand: &job.demand, placement });
    }
}

/// The power of two, in microseconds, that is next below a runtime.
pub(crate) const fn octave(runtime: Span) -> u32 {
    match runtime.as_micros().checked_ilog2() {
        Some(octave) => octave,
        None => 0,
    }
}
