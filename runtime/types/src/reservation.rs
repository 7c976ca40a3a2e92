//! Reservations: times for which nodes are kept for maintenance, or for the jobs of some users.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Span, Time};

/// The most reservations that may be known at once: [`ReservationSet`] has a bit for each.
pub const MOST_RESERVATIONS: usize = 64;

/// The request to reserve nodes.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationRequest {
    /// Names or ids of nodes.
    pub nodes: Vec<String>,
    /// When it begins; at once without it.
    pub from: Option<Time>,
    /// How long it lasts; until it is cancelled without it.
    pub length: Option<Span>,
    /// Whose jobs run there meanwhile.
    pub admits: ReservationAccess,
    /// Why, for people.
    pub reason: Option<String>,
    /// Whether jobs that may still run there when it begins, and that nobody may preempt, are stopped then
    /// and queued again; the reservation is refused otherwise.
    pub stop_jobs: bool,
}

/// Whose jobs run on reserved nodes.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationAccess {
    /// These users.
    pub users: BTreeSet<String>,
    /// The users of these projects.
    pub projects: BTreeSet<String>,
}

impl ReservationAccess {
    /// Whether nobody's jobs run there.
    #[must_use]
    pub fn is_maintenance(&self) -> bool {
        self.users.is_empty() && self.projects.is_empty()
    }
}

/// Nodes that are reserved for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReservation {
    /// Its number; no number is used twice.
    pub number: u64,
    /// The names of its nodes.
    pub nodes: BTreeSet<String>,
    /// When it begins.
    pub from: Time,
    /// When it ends; when it is cancelled without it.
    pub until: Option<Time>,
    /// Whose jobs run there meanwhile.
    pub admits: ReservationAccess,
    /// Why, for people.
    pub reason: Option<String>,
    /// Who made it.
    pub by: String,
    /// When.
    pub made_at: Time,
}

impl NodeReservation {
    /// Whether both have a node and a time in common.
    #[must_use]
    pub fn overlaps(&self, other: &NodeReservation) -> bool {
        let begins_before_end =
            |one: &NodeReservation, other: &NodeReservation| other.until.is_none_or(|until| one.from < until);
        begins_before_end(self, other)
            && begins_before_end(other, self)
            && !self.nodes.is_disjoint(&other.nodes)
    }
}

/// Some of the reservations that a head knows, by their position among them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReservationSet(u64);

impl ReservationSet {
    /// The reservations at these positions, each below [`MOST_RESERVATIONS`].
    #[must_use]
    pub fn of(positions: impl IntoIterator<Item = usize>) -> ReservationSet {
        let bit = |position: usize| u32::try_from(position).ok().and_then(|it| 1_u64.checked_shl(it));
        ReservationSet(positions.into_iter().filter_map(bit).fold(0, |set, bit| set | bit))
    }

    /// Whether both have a reservation in common.
    #[must_use]
    pub const fn intersects(self, other: ReservationSet) -> bool {
        self.0 & other.0 != 0
    }
}

/// What a job has to do with reservations.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReservationTerms {
    /// The reservations in which it may run.
    pub admitted: ReservationSet,
    /// It leaves a node within this time of its start, if it has to; `None` if it may stay for as long as it
    /// likes.
    pub leaves_within: Option<Span>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(nodes: &[&str], from: u64, until: Option<u64>) -> NodeReservation {
        NodeReservation {
            number: 1,
            nodes: nodes.iter().map(|it| (*it).to_owned()).collect(),
            from: Time::EPOCH + Span::from_secs(from),
            until: until.map(|it| Time::EPOCH + Span::from_secs(it)),
            admits: ReservationAccess::default(),
            reason: None,
            by: "root".into(),
            made_at: Time::EPOCH,
        }
    }

    #[test]
    fn one_that_begins_when_another_ends_does_not_overlap_it() {
        let first = on(&["a", "b"], 10, Some(20));
        assert!(first.overlaps(&on(&["b"], 19, None)));
        assert!(on(&["b"], 0, None).overlaps(&first));
        assert!(!first.overlaps(&on(&["b"], 20, None)));
        assert!(!on(&["b"], 20, Some(30)).overlaps(&first));
        assert!(!first.overlaps(&on(&["c"], 0, None)), "other nodes");
    }

    #[test]
    fn a_set_has_room_for_all_reservations_and_for_no_more() {
        let last = ReservationSet::of([MOST_RESERVATIONS - 1]);
        assert!(last.intersects(ReservationSet::of(0..MOST_RESERVATIONS)));
        assert!(!last.intersects(ReservationSet::of(0..MOST_RESERVATIONS - 1)));
        assert_eq!(ReservationSet::of([MOST_RESERVATIONS]), ReservationSet::default());
    }
}
