//! A plan while it is made: what is free, what will be free once the jobs that were told to stop have ended,
//! and who starts, stops or holds out.
//!
//! It serves one plan.

use std::cmp::Reverse;

use cohabit_fair_share::Turns;
use cohabit_types::{Bytes, Demand, Placement, RankPlacement, Share, Span, Spread, Time};

use super::explain;
use super::job::OrderedJob;
use super::order_outlooks::OrderOutlooks;
use super::releases::Releases;
use super::running::RunningEntry;
use super::state::OrderState;
use super::victims::{Candidates, Newcomer, VictimSet};
use super::waiting::EntryId;
use super::{OrderOptions, beliefs::Evidence};
use crate::mapping::Toggle;
use crate::placement::Outlooks;
use crate::queue::fit_tracker::fits;
use crate::queue::unplaceable::UnplaceableDemands;
use crate::{
    Action, DeviceView, FreeNodes, NodeView, PendingJob, Placer, Plan, Proposal, RunPhase, Shortage, View,
};

/// Only gangs of at most this part of all devices get kept room.
const LARGEST_DRAIN: u64 = 16;

/// Once neighbors have kept so many classes of jobs from starting, a plan goes on without those that need as
/// much: it is their devices that are shared, so none is idle.
const MAX_REFUSED: usize = 16;

/// A plan while it is made.
pub(super) struct Draft<'v, 's> {
    view: &'v View,
    state: &'s OrderState,
    options: &'s OrderOptions,
    /// What is free now and kept for no job.
    free: FreeNodes<'v>,
    releases: Releases,
    /// Jobs that wait for devices and were not tried yet.
    backlog: usize,
    devices: usize,
    pub(super) outlooks: OrderOutlooks<'s>,
    /// What is free once the jobs that were told to stop have ended; `None` if none was.
    soon: Option<FreeNodes<'v>>,
    /// Made when the first job does not fit.
    candidates: Option<Candidates<'v>>,
    without_room: UnplaceableDemands,
    /// The place for which the last job held out, if nothing has changed since.
    held: Option<HeldOffer>,
    /// Classes of jobs that neighbors kept from starting.
    refused_by_neighbors: usize,
    /// Whether device time may be kept idle for a gang.
    may_drain: bool,
    /// Devices that are kept idle for a gang.
    pub(super) drained: u64,
    pub(super) plan: Plan,
    has_free: bool,
}

/// A place that a job did not take. What is offered to the other jobs of its entry is the same.
struct HeldOffer {
    entry: EntryId,
    proposal: Proposal,
}

/// The place in what is free if no job is stopped, if there is one.
#[derive(Debug, Clone)]
struct SettledAnswer(Option<Proposal>);

/// Why a job does not start although it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PlaceWait {
    /// It waits for a faster place until then.
    BetterPlace(Time),
    /// It waits until then for a device of its own, expected at the second time.
    OwnDevice(Time, Time),
}

/// What came of a job's turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TurnOutcome {
    /// It starts now.
    Starts,
    /// It starts once others have ended.
    KeepsRoom,
    /// It waits for a better place until then.
    HoldsOut(Time),
    /// There is no room for it.
    Passed,
}

/// By what a job goes before others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Precedence {
    /// Its rank.
    Rank(f64),
    /// It waited too long.
    Overdue,
    /// Its rank, and room is kept for it until then: it takes good places alone.
    Next(f64, Time),
    /// Its turn was promised for then: it takes any place.
    Promised(Time),
}

impl<'v, 's> Draft<'v, 's> {
    pub(super) fn new(
        view: &'v View,
        state: &'s OrderState,
        options: &'s OrderOptions,
        may_drain: bool,
    ) -> Draft<'v, 's> {
        let free = FreeNodes::new(&view.nodes);
        let mut soon = None;
        for job in state.running.stopping().filter_map(|job| view.running.get(&job)) {
            let soon = soon.get_or_insert_with(|| free.clone());
            soon.remove_resident(job.id, &job.demand, &job.placement);
        }
        Draft {
            view,
            state,
            options,
            free,
            releases: Releases::default(),
            backlog: state.waiting.with_devices(),
            devices: view.nodes.iter().map(|node| node.devices.len()).sum(),
            outlooks: OrderOutlooks::new(state, view.now),
            soon,
            candidates: None,
            without_room: UnplaceableDemands::default(),
            held: None,
            refused_by_neighbors: 0,
            may_drain,
            drained: 0,
            plan: Plan::default(),
            has_free: true,
        }
    }

    /// Finds room for the job whose turn it is: now, soon, or by stopping other jobs.
    pub(super) fn try_job(
        &mut self,
        job: &OrderedJob,
        precedence: Precedence,
        turns: Option<&Turns>,
        placer: &mut impl Placer,
    ) -> TurnOutcome {
        if self.without_room.covers(&job.demand) {
            return TurnOutcome::Passed;
        }
        let pending = &self.view.pending[&job.id];
        let entry = self.state.waiting.entry_id_of(job.id);
        let held = self.held.take().filter(|held| Some(held.entry) == entry);
        let is_first_of_entry = held.is_none();
        let offer = match held {
            Some(held) => {
                self.count_tried(job);
                Some(Ok(held.proposal))
            }
            None => self.ask_for_place(pending, job, placer),
        };
        let asked = self.settled(offer.as_ref(), placer);
        let is_refused_by_neighbors = matches!(offer, Some(Err(Shortage::Slowdown { .. })));
        let mut until = None;
        if let Some(Ok(proposal)) = offer {
            let Some(wait) = self.place_wait(pending, &proposal, precedence) else {
                self.start(job, precedence, proposal);
                return TurnOutcome::Starts;
            };
            until = Some(wait.until());
            self.held = entry.map(|entry| HeldOffer { entry, proposal });
        }
        if is_first_of_entry
            && (self.keep_room_soon(pending, job, precedence, placer)
                || self.preempt(pending, job, precedence, turns, asked, placer))
        {
            self.held = None;
            return TurnOutcome::KeepsRoom;
        }
        if let Some(until) = until {
            return TurnOutcome::HoldsOut(until);
        }
        match precedence {
            Precedence::Promised(_) => self.keep_free_for(job),
            Precedence::Next(..) => {}
            Precedence::Rank(_) | Precedence::Overdue => self.drain_for(job),
        }
        // Other jobs with such a demand may get on with the neighbors.
        self.refused_by_neighbors += usize::from(is_refused_by_neighbors);
        if !is_refused_by_neighbors || self.refused_by_neighbors >= MAX_REFUSED {
            self.without_room.insert(job.demand);
        }
        TurnOutcome::Passed
    }

    /// The place that a job gets now; `None` where it does not fit.
    fn ask_for_place(
        &mut self,
        pending: &PendingJob,
        job: &OrderedJob,
        placer: &mut impl Placer,
    ) -> Option<Result<Proposal, Shortage>> {
        self.tell_outlook(job, placer);
        fits(&job.demand, &self.free)
            .then(|| placer.place_among(pending, &job.profile, &self.free, &self.outlooks))
    }

    /// The answer to a question about what is free, if it is also that about what will be free soon: then
    /// nothing is gained by asking again.
    fn settled(
        &self,
        offer: Option<&Result<Proposal, Shortage>>,
        placer: &impl Placer,
    ) -> Option<SettledAnswer> {
        let offer = offer.filter(|_| self.soon.is_none() && placer.is_settled())?;
        Some(SettledAnswer(offer.as_ref().ok().cloned()))
    }

    /// Tells a placer that shares devices what is expected of the job whose turn it is, and how many wait
    /// behind it.
    pub(super) fn tell_outlook(&mut self, job: &OrderedJob, placer: &mut impl Placer) {
        self.count_tried(job);
        if let Some(outlook) = self.outlooks.of(job.id) {
            placer.set_backlog(self.backlog as f64 / self.devices.max(1) as f64);
            placer.expect(job.id, outlook);
        }
    }

    fn count_tried(&mut self, job: &OrderedJob) {
        self.backlog = self.backlog.saturating_sub(usize::from(job.profile.milli > 0));
    }

    /// Whether a job waits instead of taking this place. One whose turn was promised does not.
    fn place_wait(
        &mut self,
        job: &PendingJob,
        proposal: &Proposal,
        precedence: Precedence,
    ) -> Option<PlaceWait> {
        match precedence {
            Precedence::Promised(_) => None,
            Precedence::Next(_, until) if proposal.slowdown > self.options.theta => {
                Some(PlaceWait::BetterPlace(until))
            }
            Precedence::Rank(_) | Precedence::Next(..) | Precedence::Overdue => self.holds_out(job, proposal),
        }
    }

    /// Whether a job waits instead of taking this place: no longer than the worse place would cost.
    pub(super) fn holds_out(&mut self, job: &PendingJob, proposal: &Proposal) -> Option<PlaceWait> {
        if proposal.colocation_slowdown.is_some() {
            return self.waits_for_own_device(job, proposal);
        }
        if proposal.slowdown <= self.options.theta {
            return None;
        }
        let rest = self.state.waiting.entry_of(job.id)?.rank.rest.typical;
        let price = (proposal.slowdown - 1.0).min(self.options.delta);
        let until = job.eligible_at + Span::from_secs_f64(price * rest);
        (until > self.view.now).then_some(PlaceWait::BetterPlace(until))
    }

    /// A job waits for a device of its own if one is expected sooner than the delay that sharing would cost.
    fn waits_for_own_device(&mut self, job: &PendingJob, proposal: &Proposal) -> Option<PlaceWait> {
        let until = job.eligible_at + proposal.delay;
        if until <= self.view.now {
            return None;
        }
        let wait = self.releases.next(self.view, self.state)?;
        if wait >= proposal.delay.as_secs_f64() {
            return None;
        }
        self.releases.claim(u64::from(job.demand.total_devices()));
        Some(PlaceWait::OwnDevice(until, self.view.now + Span::from_secs_f64(wait)))
    }

    fn start(&mut self, job: &OrderedJob, precedence: Precedence, proposal: Proposal) {
        self.free.take_as_resident(job.id, &job.demand, &proposal.placement);
        if let Some(soon) = &mut self.soon {
            soon.take_as_resident(job.id, &job.demand, &proposal.placement);
        }
        let why = match (precedence, self.state.waiting.entry_of(job.id)) {
            (Precedence::Rank(_) | Precedence::Next(..), Some(entry)) => {
                explain::start(&entry.rank, self.evidence(job), &proposal.why)
            }
            (Precedence::Promised(due_at), _) => {
                explain::promised_start(job, due_at, self.view.now, &proposal.why)
            }
            (Precedence::Overdue, _) | (_, None) => explain::overdue_start(job, self.view.now, &proposal.why),
        };
        let action = Proposal { why, ..proposal }.start(job.id, &job.profile);
        self.plan.actions.push(action);
    }

    fn evidence(&self, job: &OrderedJob) -> Evidence {
        self.state.evidence(job)
    }

    /// Keeps what will be free soon, if the job gets a good place there.
    fn keep_room_soon(
        &mut self,
        pending: &PendingJob,
        job: &OrderedJob,
        precedence: Precedence,
        placer: &mut impl Placer,
    ) -> bool {
        let Some(soon) = &self.soon else { return false };
        if !fits(&job.demand, soon) {
            return false;
        }
        let Ok(proposal) = placer.place_among(pending, &job.profile, soon, &self.outlooks) else {
            return false;
        };
        if proposal.slowdown > precedence.worst_slowdown(self.options) {
            return false;
        }
        self.keep(job, &proposal.placement);
        true
    }

    fn keep(&mut self, job: &OrderedJob, placement: &Placement) {
        self.free.take(&job.demand, placement);
        if let Some(soon) = &mut self.soon {
            soon.take_as_resident(job.id, &job.demand, placement);
        }
    }

    /// Stops the cheapest jobs without which the job gets a good place, if there are such.
    fn preempt(
        &mut self,
        pending: &PendingJob,
        job: &OrderedJob,
        precedence: Precedence,
        turns: Option<&Turns>,
        mut without_stops: Option<SettledAnswer>,
        placer: &mut impl Placer,
    ) -> bool {
        if self.options.preempt == Toggle::Off || !self.free.could_hold_when_empty(&job.demand) {
            return false;
        }
        let rank = precedence.rank();
        let (demand, priority, devices) = (&job.demand, job.priority, job.devices());
        let newcomer = Newcomer { demand, priority, rank, devices, line: job.line, turns };
        let candidates = self.candidates();
        if !candidates.has_less_urgent(job.priority, rank) {
            return false;
        }
        let soon = self.soon.as_ref().unwrap_or(&self.free).clone();
        let Some(candidates) = &self.candidates else { return false };
        for set in candidates.sets(&newcomer, &soon) {
            let without = candidates.without(&set, &soon);
            let place = match without_stops.as_ref().filter(|_| set.is_empty()) {
                Some(SettledAnswer(place)) => place.clone(),
                None => placer.place_among(pending, &job.profile, &without, &self.outlooks).ok(),
            };
            if set.is_empty() && placer.is_settled() {
                without_stops = Some(SettledAnswer(place.clone()));
            }
            let worst = precedence.worst_slowdown(self.options);
            let good = place.filter(|proposal| proposal.slowdown <= worst);
            if let Some(proposal) = good {
                self.soon = Some(without);
                self.stop(&set, job, precedence);
                self.keep(job, &proposal.placement);
                return true;
            }
        }
        matches!(precedence, Precedence::Promised(_))
            && self.preempt_anywhere(pending, job, &newcomer, precedence, &soon, placer)
    }

    /// Stops whoever holds what the job would get if all that may be stopped were.
    fn preempt_anywhere(
        &mut self,
        pending: &PendingJob,
        job: &OrderedJob,
        newcomer: &Newcomer<'_>,
        precedence: Precedence,
        soon: &FreeNodes<'v>,
        placer: &mut impl Placer,
    ) -> bool {
        let Some(candidates) = &self.candidates else { return false };
        let all = candidates.yielding(newcomer);
        let without = candidates.without(&all, soon);
        let Ok(proposal) = placer.place_among(pending, &job.profile, &without, &self.outlooks) else {
            return false;
        };
        let set = candidates.in_the_way(&all, &job.demand, &proposal.placement, soon);
        self.soon = Some(candidates.without(&set, soon));
        self.stop(&set, job, precedence);
        self.keep(job, &proposal.placement);
        true
    }

    /// From now on a job is not stopped any more; `false` if it was told to stop.
    pub(super) fn protect(&mut self, entry: &RunningEntry) -> bool {
        entry.phase == RunPhase::Running && self.candidates().protect(entry.job.id)
    }

    /// Whether the nodes could hold a demand if they ran no jobs.
    pub(super) fn could_hold(&self, demand: &Demand) -> bool {
        self.free.could_hold_when_empty(demand)
    }

    fn candidates(&mut self) -> &mut Candidates<'v> {
        let (view, state, options) = (self.view, self.state, self.options);
        self.candidates.get_or_insert_with(|| {
            let stoppable = state.running.iter().filter_map(|entry| {
                if !entry.job.preemptible || entry.in_lane || entry.phase != RunPhase::Running {
                    return None;
                }
                let cost = state.stop_costs.of(entry.job.contexts.kind());
                let protected = options.quantum.as_secs_f64().max(options.stop_ratio * cost);
                let ran = view.now.since(entry.started_at).as_secs_f64();
                (ran >= protected).then_some((entry, cost))
            });
            Candidates::new(view, stoppable, options.margin)
        })
    }

    fn stop(&mut self, set: &VictimSet, job: &OrderedJob, precedence: Precedence) {
        let Some(candidates) = &mut self.candidates else { return };
        for victim in candidates.take(set) {
            let why = explain::stop(self.state, victim, job, precedence);
            self.plan.actions.push(Action::Preempt { job: victim, why });
        }
    }

    /// Jobs like this one go on waiting for devices, before all that come later.
    pub(super) fn pass(&mut self, job: &OrderedJob, alike: usize) {
        let devices = job.profile.milli.div_ceil(u64::from(Share::WHOLE.0));
        self.releases.claim(devices.saturating_mul(alike as u64));
    }

    /// Keeps the free devices of one node for the first gang that finds no room, so that single jobs do not
    /// take each device as it becomes free.
    fn drain_for(&mut self, job: &OrderedJob) {
        let devices = u64::from(job.demand.total_devices());
        let all: u64 = self.view.nodes.iter().map(|node| node.devices.len() as u64).sum();
        if devices < 2 || devices > all / LARGEST_DRAIN || !std::mem::take(&mut self.may_drain) {
            return;
        }
        let large = |node: &&NodeView| node.devices.len() as u64 >= devices;
        let roomy = |(position, node): (usize, &NodeView)| {
            large(&node).then(|| (node.roomy_devices(&job.demand).unwrap_or(0), Reverse(position)))
        };
        let fullest = self.free.nodes().enumerate().filter_map(roomy).max();
        let Some((count @ 1.., Reverse(position))) = fullest else { return };
        let placement = devices_for(job, self.free.node(position), count);
        self.free.take(&devices_only(job), &placement);
        self.drained = u64::from(count);
    }

    /// Keeps what is free, now or soon, for the next in line: on one node where one can hold the job, since
    /// links between nodes are slow.
    pub(super) fn keep_room_for(&mut self, job: &OrderedJob) {
        let devices = job.demand.total_devices();
        let soon = self.soon.as_ref().unwrap_or(&self.free);
        let large = |node: &&NodeView| node.devices.len() as u32 >= devices;
        let roomy = |(position, node): (usize, &NodeView)| {
            large(&node).then(|| (node.roomy_devices(&job.demand).unwrap_or(0), Reverse(position)))
        };
        let Some((count, Reverse(position))) = soon.nodes().enumerate().filter_map(roomy).max() else {
            return self.keep_free_for(job);
        };
        let (demand, placement) =
            (devices_only(job), devices_for(job, soon.node(position), count.min(devices)));
        self.free.take(&demand, &placement);
        if let Some(soon) = &mut self.soon {
            soon.take(&demand, &placement);
        }
        self.drained += u64::from(count.min(devices));
    }

    /// Keeps what is free, now or soon, for a job whose turn was promised, until it has all that it needs.
    fn keep_free_for(&mut self, job: &OrderedJob) {
        let (each, nodes) = match job.demand.spread {
            Spread::Even => (job.demand.devices(), job.demand.nodes as usize),
            Spread::Free => (u32::MAX, usize::MAX),
        };
        let soon = self.soon.as_ref().unwrap_or(&self.free);
        let roomy = |(position, node): (usize, &NodeView)| {
            let is_large = job.demand.spread == Spread::Free || node.devices.len() as u32 >= each;
            let count = node.roomy_devices(&job.demand).filter(|count| is_large && *count > 0)?;
            Some((Reverse(count.min(each)), position))
        };
        let mut found: Vec<(Reverse<u32>, usize)> = soon.nodes().enumerate().filter_map(roomy).collect();
        found.sort_unstable();
        let mut parts = Vec::new();
        let mut missing = job.demand.total_devices();
        for (Reverse(count), position) in found.into_iter().take(nodes) {
            let count = count.min(missing);
            parts.extend(devices_for(job, soon.node(position), count).parts);
            missing -= count;
        }
        let (demand, placement) = (devices_only(job), Placement { parts });
        self.free.take(&demand, &placement);
        if let Some(soon) = &mut self.soon {
            soon.take(&demand, &placement);
        }
        self.drained += placement.parts.iter().map(|part| part.devices.len() as u64).sum::<u64>();
    }

    /// Whether later turns may lead to anything: something is free, or some job is less urgent by enough.
    pub(super) fn may_go_on(&mut self, priority: i32, rank: f64) -> bool {
        self.has_free = self.has_free && has_free_devices(&self.free);
        self.has_free
            || self.state.waiting.has_jobs_without_devices()
            || self.soon.is_some()
            || self.options.preempt == Toggle::On && self.candidates().has_less_urgent(priority, rank)
    }
}

impl PlaceWait {
    /// Until when the job waits at most.
    const fn until(self) -> Time {
        match self {
            PlaceWait::BetterPlace(until) | PlaceWait::OwnDevice(until, _) => until,
        }
    }
}

impl Precedence {
    /// The rank that victims are compared with.
    const fn rank(self) -> f64 {
        match self {
            Precedence::Rank(rank) | Precedence::Next(rank, _) => rank,
            Precedence::Overdue | Precedence::Promised(_) => f64::NEG_INFINITY,
        }
    }

    /// How much slower than the best a place may be for which others are stopped.
    const fn worst_slowdown(self, options: &OrderOptions) -> f64 {
        match self {
            Precedence::Rank(_) | Precedence::Next(..) | Precedence::Overdue => options.theta,
            Precedence::Promised(_) => f64::INFINITY,
        }
    }
}

/// The first devices of a node that a job fits.
fn devices_for(job: &OrderedJob, node: &NodeView, count: u32) -> Placement {
    let devices = node.first_devices(&job.demand, count);
    Placement {
        parts: vec![RankPlacement {
            node: node.id,
            devices,
            share: Share::WHOLE,
            ranks: Vec::new(),
            host: None,
        }],
    }
}

/// What a job needs without cores and memory, which others may have.
const fn devices_only(job: &OrderedJob) -> Demand {
    Demand { cpus: 0, memory: Bytes::ZERO, ..job.demand }
}

fn has_free_devices(free: &FreeNodes<'_>) -> bool {
    let is_free = |device: &DeviceView| {
        device.is_in_service() && device.free > Share(0) && device.sharing.ranks_free != Some(0)
    };
    free.nodes().any(|node| node.devices.iter().any(is_free))
}
