//! Reservations as JSON.

use std::collections::BTreeSet;

use cohabit_client::types::NodeReservation;
use serde::Serialize;

use super::rfc3339;

/// All reservations.
#[derive(Debug, Serialize)]
pub(crate) struct ReservationListDocument {
    reservations: Vec<ReservationDocument>,
}

/// One reservation; `until` is `null` where it lasts until it is cancelled.
#[derive(Debug, Serialize)]
pub(crate) struct ReservationDocument {
    number: u64,
    nodes: BTreeSet<String>,
    from: String,
    until: Option<String>,
    maintenance: bool,
    users: BTreeSet<String>,
    projects: BTreeSet<String>,
    reason: Option<String>,
    by: String,
    made_at: String,
}

impl From<&[NodeReservation]> for ReservationListDocument {
    fn from(reservations: &[NodeReservation]) -> ReservationListDocument {
        ReservationListDocument { reservations: reservations.iter().map(ReservationDocument::from).collect() }
    }
}

impl From<&NodeReservation> for ReservationDocument {
    fn from(reservation: &NodeReservation) -> ReservationDocument {
        let NodeReservation { number, nodes, from, until, admits, reason, by, made_at } = reservation.clone();
        ReservationDocument {
            number,
            nodes,
            from: rfc3339(from),
            until: until.map(rfc3339),
            maintenance: admits.is_maintenance(),
            users: admits.users,
            projects: admits.projects,
            reason,
            by,
            made_at: rfc3339(made_at),
        }
    }
}
