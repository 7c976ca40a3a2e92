//! A pipeline's plan in the making: what is free by now, who starts, and for whom room is reserved.
//!
//! It is made for one plan and then forgotten; nothing in it changes the pipeline's books.

use std::collections::BTreeSet;

use cohabit_types::{Demand, JobId, Span, Time};

use super::discipline::Discipline;
use super::expected_ends::ExpectedEnds;
use super::reservation::{Reservation, StartingJob};
use super::unplaceable::UnplaceableDemands;
use crate::{FreeNodes, PendingJob, Placer, Plan, Profile, Proposal, View};

/// A plan in the making.
pub(crate) struct Draft<'v> {
    view: &'v View,
    discipline: Discipline,
    free: FreeNodes<'v>,
    plan: Plan,
    starting: Vec<StartingJob<'v>>,
    without_room: UnplaceableDemands,
    /// Made for the first job without room.
    reservation: Option<Reservation<'v>>,
    /// Demands of jobs that were refused because they would still run when the reservation begins.
    refused: BTreeSet<Demand>,
}

/// Whose turn it may be after a job.
pub(crate) enum WalkControl {
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
            without_room: UnplaceableDemands::default(),
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
        place: &mut impl Placer,
        ends: &mut ExpectedEnds,
    ) -> WalkControl {
        let job = &self.view.pending[&job];
        if self.refuses(&job.demand, profile.runtime) {
            let shortest_alike = Span::from_micros(1 << log2_micros(profile.runtime));
            let all_alike = self.refuses(&job.demand, shortest_alike);
            return if all_alike { WalkControl::OtherClasses } else { WalkControl::Others };
        }
        if !self.without_room.covers(&job.demand)
            && let Some(next) = self.try_place(job, profile, place)
        {
            return next;
        }
        self.without_room.insert(job.demand);
        match self.discipline {
            Discipline::Strict if self.free.could_hold_when_empty(&job.demand) => WalkControl::Nobody,
            Discipline::Strict | Discipline::WorkConserving => WalkControl::OtherClasses,
            Discipline::Backfill => {
                self.reserve(job, ends);
                WalkControl::OtherClasses
            }
        }
    }

    /// Whose turn it may be if the job found room; nothing if it found none.
    fn try_place(
        &mut self,
        job: &'v PendingJob,
        profile: &Profile,
        place: &mut impl Placer,
    ) -> Option<WalkControl> {
        match place.place(job, profile, &self.free) {
            Ok(proposal) => self.start(job, profile, proposal),
            Err(shortage) if shortage.is_its_own() => {}
            Err(_) => return None,
        }
        Some(WalkControl::Others)
    }

    /// Reserves room for a job that has none, if it is the first; says when there will be some.
    pub(crate) fn reserve(&mut self, job: &PendingJob, ends: &mut ExpectedEnds) -> Option<Time> {
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
        self.free.take_as_resident(job.id, &job.demand, &placement);
        self.plan.actions.push(proposal.start(job.id, profile));
        self.starting.push(StartingJob { ends_at, demand: &job.demand, placement });
    }
}

/// The power of two, in microseconds, that is next below a runtime.
pub(crate) const fn log2_micros(runtime: Span) -> u32 {
    match runtime.as_micros().checked_ilog2() {
        Some(log2_micros) => log2_micros,
        None => 0,
    }
}
