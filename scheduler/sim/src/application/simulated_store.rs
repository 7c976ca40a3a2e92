//! The store of the simulated node, and what processes and it send each other.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::{ObjectId, ObjectStore, StoreRefusal, TransferResult};
use cohabit_types::{AttemptId, Time};

/// The store, and what its connections carry.
#[derive(Debug)]
pub(super) struct SimulatedStore {
    pub(super) core: ObjectStore,
    pub(super) budget: u64,
    /// What has memory, and what is on disk.
    pub(super) memory: BTreeSet<ObjectId>,
    pub(super) disk: BTreeSet<ObjectId>,
    /// When the last message arrives, to and from each process.
    pub(super) arrivals: BTreeMap<AttemptId, [Time; 2]>,
    /// Processes whose connections have ended.
    pub(super) ended: BTreeSet<AttemptId>,
    /// Processes that the coordinator has forgotten, and whose connections have not ended.
    pub(super) forgotten: BTreeMap<AttemptId, Vec<ObjectId>>,
}

/// From a process to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreCall {
    Reserve {
        object: ObjectId,
        bytes: u64,
    },
    Filled(ObjectId),
    Want(ObjectId),
    Unmapped(ObjectId),
    /// The connection has ended.
    Ended,
}

/// From the store to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreAnswer {
    Allocated(ObjectId),
    Stored(ObjectId),
    HandOver(ObjectId),
    Refused(ObjectId, StoreRefusal),
}

/// What the store does by and by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreWork {
    Spilled(ObjectId, TransferResult),
    BroughtBack(ObjectId, TransferResult),
    /// A process has waited for room long enough.
    TimedOut(ObjectId, AttemptId),
}

impl SimulatedStore {
    pub(super) const fn new(budget: u64) -> SimulatedStore {
        SimulatedStore {
            core: ObjectStore::new(budget, usize::MAX),
            budget,
            memory: BTreeSet::new(),
            disk: BTreeSet::new(),
            arrivals: BTreeMap::new(),
            ended: BTreeSet::new(),
            forgotten: BTreeMap::new(),
        }
    }
}
