//! The policy: jobs by rank, more urgent ones in the place of less urgent ones, and a lane for those that
//! have waited too long.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, ReasonCode, Span, Time};

use super::OrderOptions;
use super::draft::{Draft, Precedence, TurnOutcome};
use super::exclusive_schedule::ExclusiveSchedule;
use super::explain;
use super::order_outlooks::OrderOutlooks;
use super::promised_lane;
use super::state::OrderState;
use super::token_bucket::TokenBucket;
use crate::interference::InterferenceContext;
use crate::placement::dry_run;
use crate::queue::pending_reasons::explain_wait;
use crate::queue::{KeptRoom, note_stops};
use crate::{
    EndedRun, FreeNodes, PendingJob, PendingReason, Placer, Plan, Policy, Proposal, Shortage, View,
    ViewChange,
};

/// The next plan without news: not earlier and not later than this after the last one.
const WAKE: (Span, Span) = (Span::from_secs(1), Span::from_secs(300));

/// Jobs of one class that may hold out for a better place in one plan; the rest of the class is passed.
const MAX_HOLDING_OUT: usize = 32;

/// The lane holds at most what it gets in a day, and the drain what it gets in half a day.
const LANE_SECONDS: f64 = 86_400.0;
const DRAIN_SECONDS: f64 = 43_200.0;

/// The order by Gittins indices, on any placer.
#[derive(Debug, Clone)]
pub(crate) struct GittinsOrder<P> {
    placer: P,
    options: OrderOptions,
    pub(super) state: OrderState,
    lane: TokenBucket,
    drain: TokenBucket,
    /// Devices that the last plan kept idle.
    pub(super) drained: u64,
    /// Jobs that were started because they had waited too long, until they are seen to run.
    lane_starts: BTreeSet<JobId>,
}

impl<P: Placer> GittinsOrder<P> {
    /// An order with these options that knows no jobs yet.
    pub(crate) fn new(options: OrderOptions, placer: P) -> GittinsOrder<P> {
        let exclusive = placer.shares_devices().then(ExclusiveSchedule::default);
        let state = OrderState::new(&options, exclusive);
        GittinsOrder {
            placer,
            options,
            state,
            lane: TokenBucket::default(),
            drain: TokenBucket::default(),
            drained: 0,
            lane_starts: BTreeSet::new(),
        }
    }

    /// The promised turns, where turns are promised.
    #[cfg(test)]
    pub(super) fn promised(&self) -> Option<&super::promised_turns::PromisedTurns> {
        self.state.promised.as_ref()
    }

    /// When a live job is due by its promised turn, if that is known.
    #[cfg(test)]
    pub(super) fn due_at(&self, job: JobId) -> Option<Time> {
        self.promised()?.due_at(job)
    }

    /// Whether a job is in the lane, or was started there.
    #[cfg(test)]
    pub(super) fn is_in_lane(&self, job: JobId) -> bool {
        self.lane_starts.contains(&job) || self.state.running.get(job).is_some_and(|entry| entry.in_lane)
    }

    fn fill_buckets(&mut self, view: &View) {
        let all: usize = view.nodes.iter().map(|node| node.devices.len()).sum();
        let in_lane = self.state.running.in_lane();
        let held: f64 = in_lane.map(|entry| entry.job.devices()).sum();
        if let Some(exclusive) = &mut self.state.exclusive {
            exclusive.advance(view.now, all as u64);
        }
        self.lane.advance(view.now, self.options.lane * all as f64, LANE_SECONDS, held);
        self.drain.advance(view.now, self.options.drain * all as f64, DRAIN_SECONDS, self.drained as f64);
    }

    /// Jobs that started in the lane stay in it.
    fn mark_lane(&mut self) {
        let state = &mut self.state;
        self.lane_starts.retain(|job| !state.running.enter_lane(*job) && state.waiting.get(*job).is_some());
    }

    /// When to plan again even if nothing changes: ranks change as running jobs grow older, and those that
    /// this plan starts.
    fn wake(&self, view: &View, starts: bool, holding_out: Option<Time>) -> Option<Time> {
        if self.state.waiting.is_empty() {
            return None;
        }
        let crossing = self.state.running.next_crossing();
        let due = self.state.promised.as_ref().and_then(|promised| promised.next_due(view.now));
        let next = crossing.into_iter().chain(holding_out).chain(due).min();
        let (least, most) = WAKE;
        let soonest = next.unwrap_or(Time::NEVER).max(view.now + least).min(view.now + most);
        // Without running jobs nothing becomes less urgent; only holding out ends and turns come by
        // themselves.
        let waits = holding_out.is_some() || due.is_some();
        (starts || waits || !view.running.is_empty()).then_some(soonest)
    }
}

impl<P: Placer> Policy for GittinsOrder<P> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.state.learn(view, changes, &mut self.placer);
        self.mark_lane();
    }

    fn plan(&mut self, view: &View) -> Plan {
        self.state.advance(view.now);
        self.state.rotate(view.now);
        self.fill_buckets(view);
        self.state.prepare_outlooks();
        let GittinsOrder { placer, options, state, lane, drain, lane_starts, .. } = self;
        let mut draft = Draft::new(view, state, options, drain.has_more_than(0.0));
        let mut users = state.waiting.turns(view);
        let mut done = BTreeSet::new();
        // What jobs of the lane are expected to need counts as spent, so that it does not start all at once.
        let mut committed = state.lane_commitment();
        for job in state.waiting.overdue(view.now) {
            if !lane.has_more_than(committed) {
                break;
            }
            if users.as_ref().is_some_and(|users| users.waits_for_others(job.party(), &job.demand)) {
                continue;
            }
            let before = draft.plan.actions.len();
            let outcome = draft.try_job(job, Precedence::Overdue, users.as_ref(), placer);
            if let TurnOutcome::Starts | TurnOutcome::KeepsRoom = outcome {
                committed += state.expected_device_seconds(job);
                done.insert(job.id);
                if let Some(users) = &mut users {
                    users.start(job.party(), &job.demand);
                    note_stops(users, &draft.plan.actions[before..], view);
                }
            }
            if outcome == TurnOutcome::Starts {
                lane_starts.insert(job.id);
            }
        }
        let turns = promised_lane::fill(state, options.lane, view, &mut users, &mut draft, placer);
        done.extend(turns.done);
        lane_starts.extend(turns.joined);
        let mut holding_out: Option<Time> = None;
        let mut walk = state.waiting.queue.walk(users);
        // Where users take turns, each start ends one. The last members that were tried, by entry.
        let mut tried: BTreeMap<JobId, (Time, JobId)> = BTreeMap::new();
        let mut kept_room = KeptRoom::default();
        'queue: while let Some(turn) = walk.next() {
            let Some(entry) = state.waiting.entry_of(turn.job) else { continue };
            let mut held = 0;
            let mut last = tried.get(&turn.job).copied();
            while let Some(place @ (_, member)) = entry.member_after(last) {
                last = Some(place);
                let Some(job) = state.waiting.get(member).filter(|job| !done.contains(&job.id)) else {
                    continue;
                };
                if !draft.may_go_on(job.priority, entry.rank.value) {
                    walk.close_line();
                    continue 'queue;
                }
                let pending = &view.pending[&member];
                let could_hold = || draft.could_hold(&job.demand);
                let kept_until = kept_room.until(pending, walk.turns(), job.party(), view.now, could_hold);
                let rank = entry.rank.value;
                let precedence =
                    kept_until.map_or(Precedence::Rank(rank), |until| Precedence::Next(rank, until));
                let before = draft.plan.actions.len();
                match draft.try_job(job, precedence, walk.turns(), placer) {
                    TurnOutcome::Starts | TurnOutcome::KeepsRoom => {
                        walk.note_stops(&draft.plan.actions[before..], view);
                        if walk.note_start_of_member() {
                            tried.insert(turn.job, place);
                            continue 'queue;
                        }
                    }
                    TurnOutcome::HoldsOut(_) | TurnOutcome::Passed if kept_until.is_some() => {
                        draft.keep_room_for(job);
                        holding_out = holding_out.into_iter().chain(kept_until).min();
                        held += 1;
                    }
                    TurnOutcome::HoldsOut(until) => {
                        holding_out = holding_out.into_iter().chain([until]).min();
                        held += 1;
                    }
                    TurnOutcome::Passed => {
                        draft.pass(job, entry.members().count());
                        held = MAX_HOLDING_OUT;
                    }
                }
                if held >= MAX_HOLDING_OUT {
                    walk.close();
                    break;
                }
            }
        }
        let (mut plan, drained) = (std::mem::take(&mut draft.plan), draft.drained);
        self.drained = drained;
        self.state.set_aside(&turns.impossible, view.now);
        plan.wake = self.wake(view, !plan.actions.is_empty(), holding_out);
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        self.state.advance(view.now);
        self.state.prepare_outlooks();
        let GittinsOrder { placer, options, state, .. } = self;
        let free = FreeNodes::new(&view.nodes);
        let mut draft = Draft::new(view, state, options, false);
        let mut offers = BTreeMap::new();
        let mut reasons: Vec<PendingReason> = Vec::new();
        for turn in state.waiting.queue.walk(state.waiting.turns(view)).starting_each() {
            let Some(entry) = state.waiting.entry_of(turn.job) else { continue };
            for member in entry.members() {
                let (Some(pending), Some(job)) = (view.pending.get(&member), state.waiting.get(member))
                else {
                    continue;
                };
                draft.tell_outlook(job, placer);
                let place = || placer.place_among(pending, &job.profile, &free, &draft.outlooks);
                let offer = offers.entry(turn.class).or_insert_with(place).as_ref();
                let mut reason = explain_wait(member, offer.err(), reasons.len());
                match offer.map(|proposal| (proposal, draft.holds_out(pending, proposal))) {
                    Ok((proposal, Some(holds_out))) => {
                        reason.code = ReasonCode::WaitingForDevices;
                        let (until, why) = explain::hold_out(view.now, holds_out, proposal);
                        (reason.not_before, reason.why) = (Some(until), why);
                    }
                    Ok((_, None)) => {}
                    Err(_) => draft.pass(job, 1),
                }
                reason.why = format!(
                    "{}. {}",
                    reason.why,
                    capitalized(&explain::expectation(&entry.rank, state.evidence(job)))
                );
                let due_at = state.promised.as_ref().and_then(|promised| promised.due_at(member));
                reason.why += &due_at.map_or_else(String::new, |at| explain::promise(at, view.now));
                reasons.push(PendingReason { runtime: job.profile.expected_at(1.0), ..reason });
            }
        }
        reasons
    }

    fn recall(&mut self, ended: &[EndedRun]) {
        self.state.recall(ended);
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        let outlooks = OrderOutlooks::new(&self.state, view.now);
        dry_run(&mut self.placer, view, job, free, &outlooks)
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.placer.set_interference(context);
    }
}

/// The text as a sentence of its own.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
