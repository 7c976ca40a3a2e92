//! A plan of a [`super::QueuePolicy`] while it is made: what is still free, which jobs start, and for which
//! job resources are reserved.
//!
//! It serves one plan; nothing in it changes the policy's state.

use std::collections::BTreeSet;

use cohabit_types::{Demand, JobId, Span, Time};

use super::discipline::Discipline;
use super::expected_ends::ExpectedEnds;
use super::reservation::{Reservation, StartingJob};
use super::unplaceable::UnplaceableDemands;
use crate::{FreeNodes, PendingJob, Placer, Plan, Profile, Proposal, View};

/// A plan while it is made.
pub(crate) struct Draft<'v> {
    view: &'v View,
    discipline: Discipline,
    free: FreeNodes<'v>,
    plan: Plan,
    starting: Vec<StartingJob<'v>>,
    unplaceable: UnplaceableDemands,
    /// Made for the first job that does not fit.
    reservation: Option<Reservation<'v>>,
    /// Demands of jobs that would still run when the reservation begins.
    refused: BTreeSet<Demand>,
}

/// Which jobs are considered after this one.
pub(crate) enum WalkControl {
    /// All jobs behind it, which starts.
    Started,
    /// All jobs behind it.
    Others,
    /// The jobs behind it in other classes.
    OtherClasses,
    /// None.
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
            unplaceable: UnplaceableDemands::default(),
            reservation: None,
            refused: BTreeSet::new(),
        }
    }

    pub(crate) fn into_plan(self) -> Plan {
        self.plan
    }

    /// Tries to start the job whose turn it is; says which jobs are considered next. `ends` are the expected
    /// ends of the running jobs.
    pub(crate) fn try_job(
        &mut self,
        job: JobId,
        profile: &Profile,
        placer: &mut impl Placer,
        ends: &mut ExpectedEnds,
    ) -> WalkControl {
        let job = &self.view.pending[&job];
        if self.refuses(&job.demand, profile.runtime) {
            let shortest_alike = Span::from_micros(1 << log2_micros(profile.runtime));
            let all_alike = self.refuses(&job.demand, shortest_alike);
            return if all_alike { WalkControl::OtherClasses } else { WalkControl::Others };
        }
        if !self.unplaceable.covers(&job.demand)
            && let Some(next) = self.try_place(job, profile, placer)
        {
            return next;
        }
        self.unplaceable.insert(job.demand);
        match self.discipline {
            Discipline::Strict if self.free.could_hold_when_empty(&job.demand) => WalkControl::Nobody,
            Discipline::Strict | Discipline::WorkConserving => WalkControl::OtherClasses,
            Discipline::Backfill => {
                self.reserve(job, ends);
                WalkControl::OtherClasses
            }
        }
    }

    /// Which jobs are considered next if the job fits; `None` if it does not.
    fn try_place(
        &mut self,
        job: &'v PendingJob,
        profile: &Profile,
        placer: &mut impl Placer,
    ) -> Option<WalkControl> {
        match placer.place(job, profile, &self.free) {
            Ok(proposal) => Some(self.start(job, profile, proposal)),
            Err(shortage) if shortage.is_its_own() => Some(WalkControl::Others),
            Err(_) => None,
        }
    }

    /// Reserves resources for a job that does not fit, if it is the first one; returns when they become
    /// free.
    pub(crate) fn reserve(&mut self, job: &PendingJob, ends: &mut ExpectedEnds) -> Option<Time> {
        if self.reservation.is_none() && self.free.could_hold_when_empty(&job.demand) {
            let ends = ends.after(self.view.now);
            self.reservation = Reservation::new(&job.demand, &self.free, self.view, ends, &self.starting);
        }
        self.reservation.as_ref().map(|reservation| reservation.at)
    }

    /// Whether a job with this runtime conflicts with the reservation, as another job with its demand did.
    fn refuses(&self, demand: &Demand, runtime: Span) -> bool {
        let lasts = |it: &Reservation<'_>| self.view.now + runtime > it.at;
        self.reservation.as_ref().is_some_and(lasts) && self.refused.contains(demand)
    }

    fn start(&mut self, job: &'v PendingJob, profile: &Profile, proposal: Proposal) -> WalkControl {
        let placement = proposal.placement.clone();
        let ends_at = self.view.now + profile.runtime_at(proposal.slowdown);
        let admitted = match &mut self.reservation {
            Some(reservation) => reservation.admits(&job.demand, &placement, ends_at),
            None => true,
        };
        if !admitted {
            self.refused.insert(job.demand);
            return WalkControl::Others;
        }
        self.free.take_as_resident(job.id, &job.demand, &placement);
        self.plan.actions.push(proposal.start(job.id, profile));
        self.starting.push(StartingJob { ends_at, demand: &job.demand, placement });
        WalkControl::Started
    }
}

/// The logarithm of a runtime in microseconds to base 2, rounded down.
pub(crate) const fn log2_micros(runtime: Span) -> u32 {
    match runtime.as_micros().checked_ilog2() {
        Some(log2_micros) => log2_micros,
        None => 0,
    }
}
