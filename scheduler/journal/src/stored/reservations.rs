//! ReservationBook of nodes, and the requests for them.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_scheduler_core::state::ReservationBook;
use cohabit_types::{self as types, Span, Time};
use serde::{Deserialize, Serialize};
use serde_with::{As, Same};

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ReservationRequest")]
pub(crate) struct StoredReservationRequest {
    nodes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<Span>,
    #[serde(with = "As::<StoredReservationAccess>")]
    admits: types::ReservationAccess,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    stop_jobs: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ReservationAccess")]
pub(crate) struct StoredReservationAccess {
    users: BTreeSet<String>,
    projects: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::NodeReservation")]
pub(crate) struct StoredReservation {
    number: u64,
    nodes: BTreeSet<String>,
    from: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    #[serde(with = "As::<StoredReservationAccess>")]
    admits: types::ReservationAccess,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    by: String,
    made_at: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReservationBook")]
pub(crate) struct StoredReservationBook {
    last: u64,
    #[serde(with = "As::<BTreeMap<Same, StoredReservation>>")]
    known: BTreeMap<u64, types::NodeReservation>,
}

/// Whether no node was ever reserved: so it is in what was stored before nodes could be.
pub(crate) fn were_never_made(reservations: &ReservationBook) -> bool {
    *reservations == ReservationBook::default()
}

shape_of! {
    StoredReservationRequest => types::ReservationRequest,
    StoredReservationAccess => types::ReservationAccess,
    StoredReservation => types::NodeReservation,
    StoredReservationBook => ReservationBook,
}
