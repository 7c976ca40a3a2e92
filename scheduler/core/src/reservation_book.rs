//! The reservations that a head knows.

use std::collections::BTreeMap;

use cohabit_types::NodeReservation;

/// The reservations that have not ended, by number.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReservationBook {
    /// The number of the one made last.
    pub last: u64,
    /// Those that have not ended.
    pub known: BTreeMap<u64, NodeReservation>,
}
