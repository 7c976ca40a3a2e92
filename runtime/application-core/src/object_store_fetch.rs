//! Objects of other nodes: who asks for them, how they come, and what becomes of those that do not.
//!
//! The coordinator is asked once for an object, whoever wants it, and answers once: by `fetch` or `lost`.
//! Each `fetch` is answered once, by a `Fetch` that has ended or by `FetchSettled`. A fetch that nobody waits
//! for is not begun; one that was begun goes on.

use std::mem;

use cohabit_types::RankId;

use crate::errors::CallError;
use crate::ids::ObjectId;
use crate::object_entry::{Holding, ObjectEntry, ObjectProgress};
use crate::object_store::{ObjectStore, StoreEffects, refusal};
use crate::object_store_effect::{ObjectKind, ObjectPlace, ObjectStoreEffect, StoreRefusal, TransferResult};

impl ObjectStore {
    /// The coordinator has found an object that was asked for: it is fetched once there is room.
    pub fn fetch(&mut self, object: ObjectId, bytes: u64, effects: &mut StoreEffects) {
        let budget = self.budget;
        let held = self.objects.get_mut(&object).filter(|it| it.holding == Holding::Held);
        let Some(stored) = held else { return settle_fetch(object, effects) };
        match stored.progress {
            ObjectProgress::Wanted if stored.readers.is_empty() => {
                self.give_up_fetch(object, StoreRefusal::Unknown, effects);
            }
            ObjectProgress::Wanted if bytes > budget => {
                self.give_up_fetch(object, StoreRefusal::TooLarge { bytes, budget }, effects);
            }
            ObjectProgress::Wanted => {
                (stored.bytes, stored.is_asked) = (bytes, false);
                self.change_progress(object, ObjectProgress::AwaitingFetch);
                self.wait_for_room(object, effects);
            }
            // Somebody makes it here, who tells the coordinator.
            ObjectProgress::Awaiting { .. } | ObjectProgress::Reserved { .. } => {
                stored.is_asked = false;
                settle_fetch(object, effects);
            }
            ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::OnDisk
            | ObjectProgress::BringingBack => {
                stored.is_asked = false;
                effects.push(ObjectStoreEffect::FetchSettled { object });
            }
            // The coordinator does not say it twice.
            ObjectProgress::AwaitingFetch | ObjectProgress::Fetching => {}
        }
    }

    /// A fetch has ended, and the coordinator knows how. If it failed, the coordinator answers anew.
    pub fn fetched(&mut self, object: ObjectId, result: TransferResult, effects: &mut StoreEffects) {
        if self.progress(object) != Some(ObjectProgress::Fetching) {
            return;
        }
        match result {
            TransferResult::Done => self.enter_memory(object, effects),
            TransferResult::Failed => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
                if self.objects[&object].holding == Holding::Freed {
                    self.remove(object, StoreRefusal::Freed, effects);
                } else {
                    self.become_wanted(object);
                }
            }
        }
        self.advance(effects);
    }

    /// The coordinator has found that no node has an object, nor will: those who want it are told why.
    pub fn lost(&mut self, object: ObjectId, error: &CallError, effects: &mut StoreEffects) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        let is_elsewhere = match stored.progress {
            ObjectProgress::Wanted | ObjectProgress::AwaitingFetch | ObjectProgress::Fetching => true,
            // It is here, or will be.
            ObjectProgress::Awaiting { .. }
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::OnDisk
            | ObjectProgress::BringingBack => false,
        };
        stored.is_asked = false;
        if !is_elsewhere {
            return;
        }
        let readers = mem::take(&mut stored.readers);
        let lose = |to| ObjectStoreEffect::Lose { object, to, error: error.clone() };
        effects.extend(readers.into_iter().map(lose));
        match self.progress(object) {
            Some(ObjectProgress::Wanted) => self.remove(object, StoreRefusal::Unknown, effects),
            Some(ObjectProgress::AwaitingFetch) => {
                self.give_up_fetch(object, StoreRefusal::Unknown, effects);
            }
            // It may come all the same.
            Some(_) | None => {}
        }
        self.advance(effects);
    }

    /// No other node may have an object: what is here is no copy any more.
    pub fn keep(&mut self, object: ObjectId) {
        if let Some(stored) = self.objects.get_mut(&object).filter(|it| it.progress.is_complete()) {
            stored.kind = ObjectKind::Primary;
        }
    }

    /// Another node has begun to fetch an object from here.
    pub fn served(&mut self, object: ObjectId) {
        if self.objects.get(&object).is_some_and(ObjectEntry::is_cold) {
            self.use_now(object);
            self.keep_cold(object);
        }
    }

    /// The first wish for an object that is not here.
    pub(crate) fn wanted_from_elsewhere(&mut self, object: ObjectId, by: RankId, effects: &mut StoreEffects) {
        if self.objects.len() >= self.most_objects {
            let reason = StoreRefusal::TooMany { limit: self.most_objects };
            return effects.push(refusal(object, by, reason));
        }
        self.objects.insert(object, ObjectEntry { readers: vec![by], ..ObjectEntry::wanted() });
        self.want_from_elsewhere(object, effects);
    }

    /// An object is not made here: its readers wait for another node.
    pub(crate) fn want_from_elsewhere(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        let is_asked = self.become_wanted(object);
        let waits = |to: &RankId| ObjectStoreEffect::AwaitFetch { object, to: *to };
        effects.extend(self.objects[&object].readers.iter().map(waits));
        if !is_asked {
            effects.push(ObjectStoreEffect::Ask { object });
        }
    }

    /// The coordinator is to answer for an object. Whether it was to before.
    fn become_wanted(&mut self, object: ObjectId) -> bool {
        self.change_progress(object, ObjectProgress::Wanted);
        self.waiting.retain(|it| *it != object);
        let stored = self.objects.get_mut(&object).expect("it is there");
        (stored.bytes, stored.kind) = (0, ObjectKind::Copy);
        mem::replace(&mut stored.is_asked, true)
    }

    /// A fetch that was asked for does not take place.
    pub(crate) fn give_up_fetch(
        &mut self,
        object: ObjectId,
        reason: StoreRefusal,
        effects: &mut StoreEffects,
    ) {
        self.remove(object, reason, effects);
        settle_fetch(object, effects);
    }
}

/// Tells the coordinator that an object is not fetched, and that nobody here waits for it.
fn settle_fetch(object: ObjectId, effects: &mut StoreEffects) {
    let settled = ObjectStoreEffect::FetchSettled { object };
    effects.extend([settled, ObjectStoreEffect::CopyDropped { object }]);
}
