//! The store of a simulated node, and what processes and it send each other.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cohabit_application_core::{CallError, NodeNumber, ObjectId, ObjectStore, StoreRefusal, TransferResult};
use cohabit_types::{RankId, Time};

use super::object_process::{MakingKind, Storing};

/// The store, and what its connections carry.
#[derive(Debug)]
pub(super) struct SimulatedStore {
    pub(super) core: ObjectStore,
    /// What has memory, and what is on disk.
    pub(super) memory: BTreeSet<ObjectId>,
    pub(super) disk: BTreeSet<ObjectId>,
    /// What is in those that are complete.
    contents: BTreeMap<ObjectId, Bytes>,
    /// From which nodes it was told to fetch objects.
    pub(super) sources: BTreeMap<ObjectId, NodeNumber>,
    /// When the last message arrives, to and from each process.
    pub(super) arrivals: BTreeMap<RankId, [Time; 2]>,
    /// Processes whose connections have ended.
    pub(super) ended: BTreeSet<RankId>,
    /// Processes that the coordinator has forgotten, and whose connections have not ended.
    pub(super) forgotten: BTreeMap<RankId, Vec<ObjectId>>,
}

/// From a process to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreCall {
    Reserve {
        object: ObjectId,
        bytes: u64,
    },
    /// Of an object that was lost.
    Remake {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreAnswer {
    Allocated(ObjectId),
    Stored(ObjectId),
    HandOver(ObjectId),
    /// It is on its way from another node.
    Fetching(ObjectId),
    Refused(ObjectId, StoreRefusal),
    Lost(ObjectId, CallError),
}

/// What the store does by and by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreWork {
    Spilled(ObjectId, TransferResult),
    BroughtBack(ObjectId, TransferResult),
    /// A process has waited for room long enough.
    TimedOut(ObjectId, RankId),
}

impl StoreCall {
    /// A process makes an object.
    pub(super) const fn making(object: ObjectId, storing: &Storing) -> StoreCall {
        let bytes = storing.bytes;
        match storing.kind {
            MakingKind::New => StoreCall::Reserve { object, bytes },
            MakingKind::Again => StoreCall::Remake { object, bytes },
        }
    }
}

impl SimulatedStore {
    pub(super) const fn new(budget: u64) -> SimulatedStore {
        SimulatedStore {
            core: ObjectStore::new(budget, usize::MAX),
            memory: BTreeSet::new(),
            disk: BTreeSet::new(),
            contents: BTreeMap::new(),
            sources: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            ended: BTreeSet::new(),
            forgotten: BTreeMap::new(),
        }
    }

    /// The memory of an object is filled.
    pub(super) fn fill(&mut self, object: ObjectId, content: Bytes) {
        if self.memory.contains(&object) {
            self.contents.insert(object, content);
        }
    }

    /// What is in an object that is complete and here.
    pub(super) fn content(&self, object: ObjectId) -> Option<&Bytes> {
        self.contents.get(&object)
    }

    /// What lay at the last place is gone.
    pub(super) fn forget_content(&mut self, object: ObjectId) {
        if !self.memory.contains(&object) && !self.disk.contains(&object) {
            self.contents.remove(&object);
        }
    }
}
