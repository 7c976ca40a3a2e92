//! Where objects lie, as the coordinator was told, and how they can be made again: written down outside of
//! the cores, to check what the coordinator says of lost ones.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::ObjectId;
use cohabit_types::RankId;

/// So many fetches that fail are enough for a store.
const MOST_FAILURES: u32 = 5;

/// The records of the objects of a run.
#[derive(Debug, Default)]
pub(super) struct PlaceLedger {
    /// In which store a process has put an object.
    stored_in: BTreeMap<ObjectId, RankId>,
    objects: BTreeMap<ObjectId, PlaceRecord>,
    /// Stores of further nodes that have died.
    dead: BTreeSet<RankId>,
}

/// What is known of one object.
#[derive(Debug, Default)]
struct PlaceRecord {
    /// The stores that have it, as the coordinator was told.
    places: BTreeSet<RankId>,
    /// The store that got it from its maker.
    first: Option<RankId>,
    /// A store was lost that had it.
    had_loss: bool,
    is_freed: bool,
    /// How often a store has failed to fetch it since it asked for it.
    failures: BTreeMap<RankId, u32>,
    /// How often it may be made again.
    retries: Option<u32>,
    /// How often it was to be made again.
    remakes: u32,
    /// Why that failed.
    not_remade: bool,
}

/// What the ledger says of an object that is said to be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LossRecord {
    /// The coordinator was not told of it.
    Untold,
    /// These stores have it.
    Here(Vec<RankId>),
    /// It was at no place that was lost.
    NeverLost,
    /// Nobody was to hold it any more.
    Freed,
    /// It may be made again so often.
    Remakeable(u32),
    /// There is nothing left to make it from.
    Gone,
}

impl PlaceLedger {
    /// A process has put an object into a store.
    pub(super) fn put(&mut self, object: ObjectId, store: RankId) {
        self.stored_in.insert(object, store);
    }

    /// The coordinator hears from a process that an object is stored.
    pub(super) fn told_stored(&mut self, object: ObjectId) {
        let Some(store) = self.stored_in.get(&object).copied() else { return };
        let record = self.objects.entry(object).or_default();
        record.places.insert(store);
        record.first.get_or_insert(store);
        record.had_loss |= self.dead.contains(&store);
    }

    /// The coordinator hears how an object can be made again.
    pub(super) fn told_made(&mut self, object: ObjectId, retries: u32) {
        self.objects.entry(object).or_default().retries.get_or_insert(retries);
    }

    /// The coordinator hears that a store has fetched an object.
    pub(super) fn told_fetched(&mut self, object: ObjectId, store: RankId) {
        if let Some(record) = self.objects.get_mut(&object) {
            record.places.insert(store);
            record.failures.remove(&store);
        }
    }

    /// The coordinator hears that a store could not fetch an object.
    pub(super) fn told_failed(&mut self, object: ObjectId, store: RankId) {
        if let Some(record) = self.objects.get_mut(&object) {
            *record.failures.entry(store).or_insert(0) += 1;
        }
    }

    /// The coordinator hears that a store has dropped a copy.
    pub(super) fn told_dropped(&mut self, object: ObjectId, store: RankId) {
        if let Some(record) = self.objects.get_mut(&object) {
            record.places.remove(&store);
        }
    }

    /// The coordinator wants an object to be made again.
    pub(super) fn remade(&mut self, object: ObjectId) {
        let record = self.objects.entry(object).or_default();
        record.remakes += 1;
        record.not_remade = false;
    }

    /// The coordinator hears that an object was not made again.
    pub(super) fn told_not_remade(&mut self, object: ObjectId) {
        self.objects.entry(object).or_default().not_remade = true;
    }

    /// The process of a store has died, or the coordinator takes it for dead.
    pub(super) fn store_died(&mut self, store: RankId) {
        self.dead.insert(store);
        for record in self.objects.values_mut().filter(|it| it.places.contains(&store)) {
            record.places.remove(&store);
            record.had_loss = true;
        }
    }

    /// Nobody holds an object any more.
    pub(super) fn freed(&mut self, object: ObjectId) {
        if let Some(record) = self.objects.get_mut(&object) {
            record.is_freed = true;
        }
    }

    /// Whether a store has got an object from another one.
    pub(super) fn is_copy(&self, store: RankId, object: ObjectId) -> bool {
        self.stored_in.get(&object).is_some_and(|first| *first != store)
    }

    /// What is known of an object that a store is told is lost.
    pub(super) fn loss(&mut self, object: ObjectId, store: RankId) -> LossRecord {
        let failures = self.objects.get_mut(&object).and_then(|it| it.failures.remove(&store));
        if failures.is_some_and(|failures| failures >= MOST_FAILURES) {
            return LossRecord::Gone;
        }
        let Some(record) = self.objects.get(&object).filter(|it| it.first.is_some()) else {
            return LossRecord::Untold;
        };
        let left = record.retries.map_or(0, |retries| retries.saturating_sub(record.remakes));
        if record.is_freed {
            LossRecord::Freed
        } else if !record.places.is_empty() {
            LossRecord::Here(record.places.iter().copied().collect())
        } else if !record.had_loss {
            LossRecord::NeverLost
        } else if left > 0 && !record.not_remade {
            LossRecord::Remakeable(left)
        } else {
            LossRecord::Gone
        }
    }
}
