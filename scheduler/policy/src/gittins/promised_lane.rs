//! The lane of promised turns: a number of devices for jobs that are due, strictly in the order of their due
//! times.
//!
//! A running job that is due joins the lane too when its place in that order comes. So nobody in the lane is
//! due later than anybody who is not, and a job that was stopped finds no later one in its way.

use std::collections::BTreeSet;

use cohabit_fair_share::Turns;
use cohabit_types::{JobId, Share};

use super::draft::{Draft, Precedence, TurnOutcome};
use super::job::OrderedJob;
use super::state::OrderState;
use crate::queue::note_stops;
use crate::queue::unplaceable::UnplaceableDemands;
use crate::{Placer, View};

/// What the lane did in one plan.
#[derive(Debug, Default)]
pub(super) struct LaneTurns {
    /// Jobs that waited and had their turn, whatever came of it.
    pub(super) done: BTreeSet<JobId>,
    /// Jobs that joined the lane.
    pub(super) joined: BTreeSet<JobId>,
    /// Jobs that no node can hold.
    pub(super) impossible: Vec<JobId>,
}

/// Lets jobs join the lane until it is full or one of them finds no room. `lane` is a part of all
/// devices. Where users take turns, `users` says how much of their part each holds.
pub(super) fn fill(
    state: &OrderState,
    lane: f64,
    view: &View,
    users: &mut Option<Turns>,
    draft: &mut Draft<'_, '_>,
    placer: &mut impl Placer,
) -> LaneTurns {
    let mut turns = LaneTurns::default();
    let Some(promised) = &state.promised else { return turns };
    let size = lane_milli(promised.devices_milli(), lane);
    let members = state.running.in_lane();
    let mut used: u64 = members.map(|entry| held_milli(&entry.job)).sum();
    let mut without_nodes = UnplaceableDemands::default();
    for (due_at, id) in promised.overdue(view.now) {
        let running = state.running.get(id);
        if running.is_some_and(|entry| entry.in_lane) {
            continue;
        }
        let Some(job) = running.map(|entry| &entry.job).or_else(|| state.waiting.get(id)) else { continue };
        if !without_nodes.covers(&job.demand) && !draft.could_hold(&job.demand) {
            without_nodes.insert(job.demand);
        }
        if running.is_none() && without_nodes.covers(&job.demand) {
            turns.impossible.push(id);
            continue;
        }
        // Whoever holds what they are entitled to waits for others, however long that takes.
        if running.is_none()
            && users.as_ref().is_some_and(|users| users.waits_for_others(job.party(), &job.demand))
        {
            continue;
        }
        // A lane that is smaller than the job has room for it alone.
        if used + held_milli(job) > size.max(held_milli(job)) {
            break;
        }
        used += held_milli(job);
        let joins = match running {
            Some(entry) => draft.protect(entry),
            None => {
                turns.done.insert(id);
                let before = draft.plan.actions.len();
                let starts = match draft.try_job(job, Precedence::Promised(due_at), users.as_ref(), placer) {
                    TurnOutcome::Starts => true,
                    TurnOutcome::KeepsRoom => false,
                    TurnOutcome::HoldsOut(_) | TurnOutcome::Passed => break,
                };
                if let Some(users) = users {
                    users.start(job.party(), &job.demand);
                    note_stops(users, &draft.plan.actions[before..], view);
                }
                starts
            }
        };
        if joins {
            turns.joined.insert(id);
        }
    }
    turns
}

/// The devices of the lane, in thousandths: whole ones.
fn lane_milli(all_milli: u64, lane: f64) -> u64 {
    let whole = u64::from(Share::WHOLE.0);
    (lane * (all_milli / whole) as f64).ceil() as u64 * whole
}

/// The devices that a job may keep from others, in thousandths: a part of one counts as one.
fn held_milli(job: &OrderedJob) -> u64 {
    job.profile.milli.next_multiple_of(u64::from(Share::WHOLE.0))
}
