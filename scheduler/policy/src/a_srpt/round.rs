//! One plan while it is made: what is still free, and the decision about each job at its turn.
//!
//! The order of the turns is not decided here, and nothing outlives the plan.

use std::collections::BTreeMap;

use cohabit_types::{Demand, GpuRequest, Span, Time};

use super::delay_rule::DelayRule;
use super::delayed_jobs::{ClassScans, DelayedJobs};
use super::queue_state::Entry;
use super::{ASrptOptions, QueueMode, StarvationBarrier};
use crate::queue::expected_ends::ExpectedEnds;
use crate::queue::reservation::{Reservation, StartingJob};
use crate::{ClassId, FreeNodes, PendingJob, Placer, Proposal, Shortage, View};

/// After so many jobs of one class conflicted with a reservation, the rest of the class is skipped.
const MAX_REFUSED: u32 = 64;

/// The options that decide about a job at its turn.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    delay_rule: DelayRule,
    queue_mode: QueueMode,
    starvation_barrier: StarvationBarrier,
}

impl Rules {
    pub(super) const fn new(options: &ASrptOptions) -> Rules {
        Rules {
            delay_rule: DelayRule::new(options),
            queue_mode: options.queue_mode,
            starvation_barrier: options.starvation_barrier,
        }
    }
}

/// The decision about a job.
#[derive(Debug)]
pub(super) enum JobDecision {
    /// It starts with this proposal.
    Start(Proposal),
    /// It waits for a better placement until then; others may pass.
    Delay(Time),
    /// It waits, and so does its whole class at least until then.
    DelayClass(Time),
    /// It conflicts with a reservation; others may pass.
    ConflictsWithReservation,
    /// It does not fit, or its class conflicts with a reservation; others may pass.
    Pass,
    /// It does not fit, and no job may pass.
    Block,
}

/// The state of a plan while it is made.
pub(super) struct Round<'r, P> {
    rules: &'r Rules,
    placer: &'r mut P,
    view: &'r View,
    now: Time,
    /// When running jobs are expected to end.
    ends: &'r mut ExpectedEnds,
    /// The median wait of recent starts.
    usual_wait: Span,
    free: FreeNodes<'r>,
    /// Thousandths of devices that are free on all nodes together: a job that needs more does not fit.
    free_millis: u64,
    /// Where a job of each class would go, until something is taken.
    offers: BTreeMap<ClassId, Result<Proposal, Shortage>>,
    starting: Vec<StartingJob<'r>>,
    /// Made for the first starving job.
    reservation: Option<Reservation<'r>>,
    /// How many jobs of each class conflict with it.
    refused: BTreeMap<ClassId, u32>,
    /// Classes that were scanned job by job.
    pub(super) scans: ClassScans,
}

impl<'r, P: Placer> Round<'r, P> {
    pub(super) fn new(
        rules: &'r Rules,
        placer: &'r mut P,
        view: &'r View,
        ends: &'r mut ExpectedEnds,
        usual_wait: Span,
        free_millis: u64,
    ) -> Round<'r, P> {
        Round {
            rules,
            placer,
            view,
            now: view.now,
            ends,
            usual_wait,
            free: FreeNodes::new(&view.nodes),
            free_millis,
            offers: BTreeMap::new(),
            starting: Vec::new(),
            reservation: None,
            refused: BTreeMap::new(),
            scans: ClassScans::default(),
        }
    }

    /// Decides about a job; what it starts with is taken.
    pub(super) fn decide(
        &mut self,
        class: ClassId,
        job: &'r PendingJob,
        entry: &Entry,
        delayed_jobs: &DelayedJobs,
    ) -> JobDecision {
        if job.demand.total_milli() > self.free_millis {
            return self.refuse(class, job, entry);
        }
        let Ok(proposal) = self.offer(class, job, entry).clone() else {
            return self.refuse(class, job, entry);
        };
        let until = match self.find_delay(entry, &proposal) {
            None => return self.start(class, job, entry, proposal),
            Some(until) => until,
        };
        if !self.scans.has(class)
            && let Some(all) = delayed_jobs.delayed_until(&entry.class_key, proposal.slowdown)
            && self.now < all
        {
            return JobDecision::DelayClass(all);
        }
        self.scans.note(class, &entry.class_key, proposal.slowdown, until);
        JobDecision::Delay(until)
    }

    /// Where a job of this class would go with what is free now.
    pub(super) fn offer(
        &mut self,
        class: ClassId,
        job: &PendingJob,
        entry: &Entry,
    ) -> &Result<Proposal, Shortage> {
        let Round { placer, free, offers, .. } = self;
        offers.entry(class).or_insert_with(|| placer.place(job, &entry.profile, free))
    }

    /// Until when a job waits instead of taking this placement; `None` if it takes it.
    pub(super) fn find_delay(&self, entry: &Entry, proposal: &Proposal) -> Option<Time> {
        let better = self.rules.delay_rule.ends_at(&entry.profile, entry.queued_at, proposal.slowdown);
        // Before its turn, for which it could wait as well, a job takes only the best placement.
        let better = better.map(|until| if entry.turn_at.is_some() { until } else { Time::NEVER });
        better.filter(|until| self.now < *until)
    }

    /// Starts a job, unless it conflicts with a reservation.
    fn start(
        &mut self,
        class: ClassId,
        job: &'r PendingJob,
        entry: &Entry,
        proposal: Proposal,
    ) -> JobDecision {
        let ends_at = self.now + entry.profile.runtime_at(proposal.slowdown);
        let admitted = self
            .reservation
            .as_mut()
            .is_none_or(|reservation| reservation.admits(&job.demand, &proposal.placement, ends_at));
        if !admitted {
            self.scans.cut_short(class);
            let refused = self.refused.entry(class).or_default();
            *refused += 1;
            return if *refused < MAX_REFUSED {
                JobDecision::ConflictsWithReservation
            } else {
                JobDecision::Pass
            };
        }
        self.take(job, &proposal);
        let placement = proposal.placement.clone();
        self.starting.push(StartingJob { ends_at, demand: &job.demand, placement });
        JobDecision::Start(proposal)
    }

    fn refuse(&mut self, class: ClassId, job: &'r PendingJob, entry: &Entry) -> JobDecision {
        self.scans.cut_short(class);
        let strict = self.rules.queue_mode == QueueMode::Strict;
        let passed = !strict && self.is_starving(entry);
        if !(strict || passed) || !self.free.could_hold_when_empty(&job.demand) {
            return JobDecision::Pass;
        }
        match self.rules.starvation_barrier {
            StarvationBarrier::Reserve if !strict => {
                self.reserve(&self.demand_to_reserve(class, &job.demand));
                JobDecision::Pass
            }
            StarvationBarrier::Reserve | StarvationBarrier::Block | StarvationBarrier::Off => {
                JobDecision::Block
            }
        }
    }

    /// A job that may share with no other needs a device of its own.
    fn demand_to_reserve(&self, class: ClassId, demand: &Demand) -> Demand {
        match self.offers.get(&class) {
            Some(Err(Shortage::Slowdown { .. })) => {
                Demand { gpus: GpuRequest::Whole(1), max_slowdown: None, ..*demand }
            }
            Some(_) | None => *demand,
        }
    }

    /// Only the first starving job gets a reservation.
    fn reserve(&mut self, demand: &Demand) {
        if self.reservation.is_none() {
            let ends = self.ends.after(self.now);
            self.reservation = Reservation::new(demand, &self.free, self.view, ends, &self.starting);
        }
    }

    fn is_starving(&self, entry: &Entry) -> bool {
        self.rules.starvation_barrier != StarvationBarrier::Off
            && entry.turn_at.is_some()
            && self.now.since(entry.queued_at)
                > self.rules.delay_rule.tolerance(&entry.profile, self.usual_wait)
    }

    fn take(&mut self, job: &PendingJob, proposal: &Proposal) {
        self.free.take_as_resident(job.id, &job.demand, &proposal.placement);
        self.free_millis = self.free_millis.saturating_sub(job.demand.total_milli());
        self.offers.clear();
    }
}
