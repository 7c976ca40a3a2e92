//! The reservations that were accepted: who may be on which node, and when.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobSpec, NodeReservation, Span, Time};

use super::observed::ObservedAttempt;

/// A job that may be preempted starts on a node that is reserved after this time or later.
const PREEMPTIBLE: Span = Span::from_secs(900);

/// The reservations that were accepted, by number.
#[derive(Debug, Default)]
pub(super) struct ReservedNodes {
    /// Those that were not cancelled.
    valid: BTreeMap<u64, NodeReservation>,
    /// All.
    made: Vec<NodeReservation>,
}

impl ReservedNodes {
    pub(super) fn add(&mut self, reservation: &NodeReservation) {
        self.made.push(reservation.clone());
        self.valid.insert(reservation.number, reservation.clone());
    }

    pub(super) fn cancel(&mut self, number: u64) {
        self.valid.remove(&number);
    }

    /// An admin resumed a node: maintenance there is over.
    pub(super) fn resume(&mut self, node: &str, at: Time) {
        for reservation in self.valid.values_mut() {
            if reservation.admits.is_maintenance() && (reservation.from <= at || reservation.until.is_none())
            {
                reservation.nodes.remove(node);
            }
        }
    }

    /// Whether an attempt of this user's may not start now, because it may be there when a node of it is
    /// reserved for others. `ends_it` says how long it runs at most.
    pub(super) fn forbid_start(
        &self,
        user: &str,
        ends_it: &JobSpec,
        attempt: &ObservedAttempt,
        at: Time,
    ) -> bool {
        let limit = ends_it.time_limit.map(|limit| limit + ends_it.stop.grace);
        let leaves_within = limit.into_iter().chain(ends_it.preemptible.then_some(PREEMPTIBLE)).min();
        let comes_too_soon =
            |it: &NodeReservation| leaves_within.is_none_or(|span| at + span > it.from) && !is_over(it, at);
        self.valid.values().any(|it| keeps_off(it, user, attempt) && comes_too_soon(it))
    }

    /// Whether a store of this user's may not start now, because its node is reserved for others, or will be
    /// before it could have stopped.
    pub(super) fn forbid_store(
        &self,
        user: &str,
        spec: &JobSpec,
        attempt: &ObservedAttempt,
        at: Time,
    ) -> bool {
        let comes_at_once = |it: &NodeReservation| it.from <= at + spec.stop.grace && !is_over(it, at);
        self.valid.values().any(|it| comes_at_once(it) && keeps_off(it, user, attempt))
    }

    /// Whether an attempt of this user's that has not been told to stop is on a node that is reserved for
    /// others now.
    pub(super) fn forbid_presence(&self, user: &str, attempt: &ObservedAttempt, at: Time) -> bool {
        let is_now = |it: &NodeReservation| it.from <= at && !is_over(it, at);
        self.valid.values().any(|it| is_now(it) && keeps_off(it, user, attempt))
    }

    /// Whether an attempt of this user's may have been stopped for a reservation. Its record has the name
    /// that its node had when it started; `names` are those for which the node has asked, and which it may
    /// have got since.
    pub(super) fn may_have_stopped(
        &self,
        user: &str,
        attempt: &ObservedAttempt,
        names: &BTreeSet<String>,
    ) -> bool {
        let is_there = |it: &NodeReservation| !it.nodes.is_disjoint(names) && !it.admits.users.contains(user);
        self.made.iter().any(|it| keeps_off(it, user, attempt) || is_there(it))
    }
}

fn is_over(reservation: &NodeReservation, at: Time) -> bool {
    reservation.until.is_some_and(|until| until <= at)
}

fn keeps_off(reservation: &NodeReservation, user: &str, attempt: &ObservedAttempt) -> bool {
    let is_there = attempt.ranks.iter().any(|rank| reservation.nodes.contains(&rank.node));
    is_there && !reservation.admits.users.contains(user)
}
