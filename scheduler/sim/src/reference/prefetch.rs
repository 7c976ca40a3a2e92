//! When members of an array may be ordered in advance, and when they begin.
//!
//! What was allowed when the order was sent counts: a user may have wanted something else since, and the
//! worker may have begun it before it heard of that.

use std::collections::BTreeMap;

use cohabit_scheduler_core::{Effect, Event};
use cohabit_types::{
    AttemptId, DeviceId, HeldRank, Inventory, JobId, NodeId, Order, Report, RunOrder, Span, Time, WorkerKey,
};

use super::job::ReferenceJob;
use super::observed::ObservedAttempt;
use super::{HandledEvent, ReferenceModel};

/// An attempt that a worker has in advance.
#[derive(Debug)]
pub(super) struct OrderedInAdvance {
    attempt: AttemptId,
    /// It begins when this one has ended.
    after: AttemptId,
    node: NodeId,
    devices: Vec<DeviceId>,
    ordered_at: Time,
}

/// An attempt that was ordered in advance, and has begun.
#[derive(Debug)]
pub(super) struct BegunInAdvance {
    /// What ended before. Its time on the device is that of both as long as the head knows of one only.
    after: AttemptId,
    ordered_at: Time,
}

impl ReferenceModel {
    /// When an attempt was ordered that was ordered in advance, by the head's clock.
    pub(crate) fn ordered_in_advance_at(&self, attempt: AttemptId) -> Option<Time> {
        self.begun_in_advance.get(&attempt).map(|it| it.ordered_at)
    }

    /// The first of the attempts that followed each other up to this one.
    pub(crate) fn first_before(&self, mut attempt: AttemptId) -> AttemptId {
        while let Some(BegunInAdvance { after, .. }) = self.begun_in_advance.get(&attempt) {
            attempt = *after;
        }
        attempt
    }

    /// Those that have begun are attempts like any other.
    pub(super) fn note_begun(&mut self) {
        let jobs = &self.jobs;
        let begun = self.prefetched.extract_if(.., |id, it| it.has_begun(*id, jobs));
        let begun =
            begun.map(|(_, it)| (it.attempt, BegunInAdvance { after: it.after, ordered_at: it.ordered_at }));
        self.begun_in_advance.extend(begun);
    }

    /// Takes note of what workers have given back, or cannot have any more.
    pub(super) fn note_given_back(&mut self, it: &HandledEvent<'_>) {
        match it.event {
            Event::Report(key, Report::Ended { rank, .. }) if it.is_linked(*key) => {
                self.give_back_if(|prefetched| {
                    prefetched.attempt == rank.attempt && prefetched.node == key.node
                });
            }
            Event::Joined(key, inventory) if it.is_linked(*key) => {
                self.give_back_if(|prefetched| prefetched.has_not_begun(*key, inventory));
            }
            Event::BackupRestored { .. } => self.give_back_if(|_| true),
            Event::Report(..)
            | Event::Joined(..)
            | Event::HeadStarted(_)
            | Event::Client(..)
            | Event::Lost(..)
            | Event::Planned(..)
            | Event::Alarm
            | Event::InterferenceUpdated
            | Event::ClockSet(_)
            | Event::Restored(_) => {}
        }
    }

    /// Forgets those, and makes the ones behind them follow what they followed.
    fn give_back_if(&mut self, is_gone: impl Fn(&OrderedInAdvance) -> bool) {
        let gone: Vec<JobId> =
            self.prefetched.iter().filter(|(_, it)| is_gone(it)).map(|(id, _)| *id).collect();
        for given_back in gone.iter().filter_map(|id| self.prefetched.remove(id)).collect::<Vec<_>>() {
            self.ordered.remove(&given_back.attempt.rank(0));
            for behind in self.prefetched.values_mut().filter(|it| it.after == given_back.attempt) {
                behind.after = given_back.after;
            }
        }
    }

    /// Checks the orders in advance that an event has led to, and remembers them.
    pub(super) fn check_prefetches(&mut self, it: &HandledEvent<'_>) -> Result<(), String> {
        for effect in it.effects {
            let Effect::SendOrder(key, Order::Run(order)) = effect else { continue };
            let Some(after) = order.after else { continue };
            let wrong = |why: String| format!("{} is ordered in advance, but {why}", order.attempt);
            self.check_prefetch(it, *key, order, after.attempt).map_err(wrong)?;
            let prefetched = OrderedInAdvance {
                attempt: order.attempt,
                after: after.attempt,
                node: key.node,
                devices: order.ranks[0].devices.clone(),
                ordered_at: it.at,
            };
            self.prefetched.insert(order.attempt.job, prefetched);
        }
        Ok(())
    }

    fn check_prefetch(
        &self,
        it: &HandledEvent<'_>,
        key: WorkerKey,
        order: &RunOrder,
        after: AttemptId,
    ) -> Result<(), String> {
        let (id, place) = (order.attempt.job, self.place_of(after));
        let [run] = &order.ranks[..] else { return Err("it has not one rank".to_owned()) };
        let other = |other: &&JobId| other.number != id.number && self.only_lacks_room(it, **other);
        let why_not = match () {
            () if !self.config.succession || self.config.prefetch == Span::ZERO => {
                "the head was told not to start anything without a plan"
            }
            () if self.prefetched.contains_key(&id) => "a worker has it already",
            () if id.number != after.job.number || id <= after.job => {
                "it follows no earlier member of its array"
            }
            () if !self.only_lacks_room(it, id) => "it waits for something else",
            () if place.is_none() => "what it follows does not run",
            () if place != Some((key.node, run.devices.clone())) => "what it follows is at another place",
            () if self.live.iter().any(|job| other(&job)) => "another job waits, too",
            () if self.prefetched.values().any(|it| it.after == after) => {
                "another one follows the same attempt"
            }
            () => return Ok(()),
        };
        Err(why_not.to_owned())
    }

    /// Where an attempt is that lives, or that a worker has in advance.
    fn place_of(&self, attempt: AttemptId) -> Option<(NodeId, Vec<DeviceId>)> {
        if let Some(it) = self.prefetched.get(&attempt.job).filter(|it| it.attempt == attempt) {
            return Some((it.node, it.devices.clone()));
        }
        let live = self.jobs.get(&attempt.job)?.observed.live().filter(|it| it.number == attempt.attempt)?;
        let node = self.ordered.get(&attempt.rank(0))?;
        Some((*node, live.ranks.first()?.devices.clone()))
    }

    /// Whether this start is the beginning of an attempt that was ordered in advance: what it follows has
    /// ended by this event, or by the one that has begun and ended in between.
    pub(super) fn follows_an_end(&self, id: JobId, attempt: &ObservedAttempt) -> bool {
        let prefetched = self.prefetched.get(&id).filter(|it| it.attempt == id.attempt(attempt.number));
        let Some(OrderedInAdvance { after, devices, .. }) = prefetched else { return false };
        let before = self.jobs.get(&after.job).and_then(|job| job.observed.attempt(after.attempt));
        let has_ended = before.is_some_and(|before| before.ended_at.is_some());
        has_ended && attempt.ranks.iter().all(|rank| rank.devices == *devices)
    }
}

impl OrderedInAdvance {
    /// Whether it is an attempt of this job now.
    pub(super) fn has_begun(&self, id: JobId, jobs: &BTreeMap<JobId, ReferenceJob>) -> bool {
        jobs.get(&id).is_some_and(|job| job.observed.latest_number() >= self.attempt.attempt)
    }

    /// Whether it was at this worker, which does not hold it.
    fn has_not_begun(&self, key: WorkerKey, inventory: &Inventory) -> bool {
        let is_held = |held: &HeldRank| held.rank == self.attempt.rank(0);
        self.node == key.node && !inventory.held_ranks.iter().any(is_held)
    }
}
