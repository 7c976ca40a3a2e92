//! Fetches that are under way between the stores of nodes.

use std::collections::BTreeMap;

use bytes::Bytes;
use cohabit_application_core::{FetchFailure, ObjectId};
use cohabit_types::RankId;

/// All fetches that are under way, by number.
#[derive(Debug, Default)]
pub(super) struct SimulatedFetches {
    pub(super) last: u64,
    pub(super) fetches: BTreeMap<u64, SimulatedFetch>,
}

/// A store fetches an object from another one.
#[derive(Debug)]
pub(super) struct SimulatedFetch {
    pub(super) object: ObjectId,
    pub(super) from: RankId,
    pub(super) to: RankId,
    /// What the source has, until the connection breaks.
    pub(super) content: Result<Bytes, FetchFailure>,
}

impl SimulatedFetches {
    pub(super) fn is_empty(&self) -> bool {
        self.fetches.is_empty()
    }
}
