//! What the processes of a node, the coordinator and the stores of other nodes may say to the store of a
//! node, in any order. It stays consistent, and never has more memory than its budget.

use std::collections::BTreeSet;

use cohabit_application_core::{
    ObjectId, ObjectKind, ObjectStore, ObjectStoreEffect, ToStore, TransferResult,
};
use cohabit_types::{JobId, RankId};
use serde::{Deserialize, Serialize};

/// Memory for objects, in bytes.
const BUDGET: u64 = 100;
const MOST_OBJECTS: usize = 8;

/// What happens to the objects of a node. Objects and processes are few, so that they meet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StoreAction {
    /// A process wants memory for so many bytes.
    Reserves(u8, u8),
    /// The same, for an object that another process named.
    Remakes(u8, u8),
    /// A process has filled an object.
    Fills(u8),
    /// A process gives an object up.
    Abandons(u8),
    /// A process wants an object.
    Wants(u8),
    /// A process does not map an object any more.
    Unmaps(u8),
    /// A process has waited long enough for an object.
    TimesOut(u8),
    /// There was no memory for an object.
    NotAllocated(u8),
    /// A process has ended.
    Ends(u8),
    /// The coordinator says something.
    Hears(ToStore),
    /// An object is to be fetched, of so many bytes.
    Fetch(u8, u8),
    /// An object was fetched, or not.
    Fetched(u8, bool),
    /// Another store fetches an object.
    Serves(u8),
    /// A spill has ended, well or not.
    Spilled(u8, bool),
    /// An object has come back from disk, or not.
    BroughtBack(u8, bool),
}

/// A store.
#[derive(Debug)]
pub(crate) struct FuzzedStore(ObjectStore);

impl FuzzedStore {
    pub(crate) const fn new() -> FuzzedStore {
        FuzzedStore(ObjectStore::new(BUDGET, MOST_OBJECTS))
    }

    pub(crate) fn take(&mut self, action: StoreAction) {
        let (store, mut all) = (&mut self.0, Vec::new());
        let effects: &mut Vec<ObjectStoreEffect> = &mut all;
        match action {
            StoreAction::Reserves(what, bytes) => {
                store.reserve(object(what), bytes.into(), ObjectKind::Primary, maker(what), effects);
            }
            StoreAction::Remakes(what, bytes) => {
                store.reserve(object(what), bytes.into(), ObjectKind::Primary, reader(what), effects);
            }
            StoreAction::Fills(what) => store.filled(object(what), effects),
            StoreAction::Abandons(what) => store.abandoned(object(what), maker(what), effects),
            StoreAction::Wants(what) => store.wanted(object(what), reader(what), effects),
            StoreAction::Unmaps(what) => store.unmapped(object(what), reader(what), effects),
            StoreAction::TimesOut(what) => store.timed_out(object(what), reader(what), effects),
            StoreAction::NotAllocated(what) => store.not_allocated(object(what), effects),
            StoreAction::Ends(what) => store.member_ended(reader(what), effects),
            StoreAction::Hears(frame) => hear(store, frame, effects),
            StoreAction::Fetch(what, bytes) => store.fetch(object(what), bytes.into(), effects),
            StoreAction::Fetched(what, is_done) => {
                store.fetched(object(what), transfer(is_done), effects);
            }
            StoreAction::Serves(what) => store.served(object(what)),
            StoreAction::Spilled(what, is_done) => store.spilled(object(what), transfer(is_done), effects),
            StoreAction::BroughtBack(what, is_done) => {
                store.brought_back(object(what), transfer(is_done), effects);
            }
        }
        store.check().expect("the store is consistent");
    }
}

fn hear(store: &mut ObjectStore, frame: ToStore, effects: &mut Vec<ObjectStoreEffect>) {
    match frame {
        ToStore::Free { object } => store.free(object, effects),
        ToStore::Keep { object } => store.keep(object),
        ToStore::Forget { maker, keep } => {
            let keep: BTreeSet<ObjectId> = keep.into_iter().collect();
            store.forget(maker, &keep, effects);
        }
        ToStore::Fetch { object, bytes, from: _ } => store.fetch(object, bytes, effects),
        ToStore::Lost { object, error } => store.lost(object, &error, effects),
        ToStore::Tell { request: _ } => _ = store.figures(),
    }
}

/// One of few processes, which names the object.
const fn maker(what: u8) -> RankId {
    JobId::new(2 + what as u64 % 2).attempt(1).rank(0)
}

/// One of few processes, which may be the maker.
const fn reader(what: u8) -> RankId {
    JobId::new(2 + what as u64 / 16 % 4).attempt(1).rank(0)
}

/// One of few objects.
const fn object(what: u8) -> ObjectId {
    ObjectId { maker: maker(what), number: what as u64 / 2 % 4 }
}

const fn transfer(is_done: bool) -> TransferResult {
    if is_done { TransferResult::Done } else { TransferResult::Failed }
}

/// An object of the seeds.
#[cfg(test)]
pub(crate) const fn seed_object() -> ObjectId {
    object(2)
}
