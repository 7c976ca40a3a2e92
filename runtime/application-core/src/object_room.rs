//! The room of the store of a node: what counts, who waits for it, and which objects leave memory for it.

use std::mem;

use crate::ids::ObjectId;
use crate::object_entry::{Holding, ObjectEntry, ObjectProgress};
use crate::object_store::{ObjectStore, SpillPermission, StoreEffects, refuse};
use crate::object_store_effect::{ObjectKind, ObjectPlace, ObjectStoreEffect, StoreRefusal};

impl ObjectStore {
    /// Changes where an object is, and counts its bytes there.
    pub(crate) fn change_progress(&mut self, object: ObjectId, progress: ObjectProgress) {
        let stored = self.objects.get_mut(&object).expect("only objects that are there change");
        let (before, bytes) = (mem::replace(&mut stored.progress, progress), stored.bytes);
        self.count(before, Some(progress), bytes);
        match progress {
            ObjectProgress::Spilling => _ = self.spilling.insert(object),
            ObjectProgress::Wanted
            | ObjectProgress::AwaitingFetch
            | ObjectProgress::Fetching
            | ObjectProgress::Awaiting { .. }
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::OnDisk
            | ObjectProgress::BringingBack => _ = self.spilling.remove(&object),
        }
    }

    fn count(&mut self, before: ObjectProgress, after: Option<ObjectProgress>, bytes: u64) {
        let change = |had: bool, has: bool, total: u64| match (had, has) {
            (false, true) => total + bytes,
            (true, false) => total - bytes,
            (true, true) | (false, false) => total,
        };
        self.memory = change(before.has_memory(), after.is_some_and(ObjectProgress::has_memory), self.memory);
        self.disk = change(before.is_on_disk(), after.is_some_and(ObjectProgress::is_on_disk), self.disk);
        if before.is_on_disk() && !after.is_some_and(ObjectProgress::is_on_disk) {
            self.spills = SpillPermission::Allowed;
        }
    }

    /// Forgets an object; its effects have been pushed. Readers that still wait are told the reason.
    pub(crate) fn remove(&mut self, object: ObjectId, reason: StoreRefusal, effects: &mut StoreEffects) {
        let Some(stored) = self.objects.remove(&object) else { return };
        self.count(stored.progress, None, stored.bytes);
        self.spilling.remove(&object);
        self.waiting.retain(|it| *it != object);
        if self.cold.remove(&stored.last_use).is_some() {
            self.cold_bytes -= stored.bytes;
        }
        refuse(object, stored.readers, reason, effects);
    }

    /// Counts a use. The object is not cold for now.
    pub(crate) fn use_now(&mut self, object: ObjectId) {
        self.last_use += 1;
        let stored = self.objects.get_mut(&object).expect("it is there");
        let before = mem::replace(&mut stored.last_use, self.last_use);
        if self.cold.remove(&before).is_some() {
            self.cold_bytes -= stored.bytes;
        }
    }

    /// An object in memory that nobody maps is cold if it is held, and goes if it is not.
    pub(crate) fn settle(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        let stored = &self.objects[&object];
        if stored.progress != ObjectProgress::InMemory || !stored.mapped.is_empty() {
            return;
        }
        match stored.holding {
            Holding::Held => self.keep_cold(object),
            Holding::Freed => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
                self.remove(object, StoreRefusal::Freed, effects);
            }
        }
    }

    /// An object may leave memory.
    pub(crate) fn keep_cold(&mut self, object: ObjectId) {
        let ObjectEntry { last_use, bytes, .. } = self.objects[&object];
        if self.cold.insert(last_use, object).is_none() {
            self.cold_bytes += bytes;
        }
    }

    /// Puts an object at the end of those that need room. A new request is a reason to try the disk again.
    pub(crate) fn wait_for_room(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        self.waiting.push_back(object);
        self.spills = SpillPermission::Allowed;
        self.advance(effects);
    }

    pub(crate) fn stop_waiting_without_readers(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        let stored = &self.objects[&object];
        if !stored.readers.is_empty() {
            return;
        }
        match stored.progress {
            ObjectProgress::OnDisk => self.waiting.retain(|it| *it != object),
            ObjectProgress::AwaitingFetch => self.give_up_fetch(object, StoreRefusal::Unknown, effects),
            ObjectProgress::Wanted
            | ObjectProgress::Fetching
            | ObjectProgress::Awaiting { .. }
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::BringingBack => {}
        }
    }

    /// Gives room to those that wait, in order, and starts spills for the first that finds none.
    pub(crate) fn advance(&mut self, effects: &mut StoreEffects) {
        while let Some(object) = self.waiting.front().copied() {
            let ObjectEntry { bytes, progress, .. } = self.objects[&object];
            if !self.make_room(bytes, effects) {
                return;
            }
            self.waiting.pop_front();
            let (next, effect) = match progress {
                ObjectProgress::Awaiting { maker } => {
                    (ObjectProgress::Reserved { maker }, ObjectStoreEffect::Allocate { object, bytes, maker })
                }
                ObjectProgress::AwaitingFetch => {
                    (ObjectProgress::Fetching, ObjectStoreEffect::Fetch { object, bytes })
                }
                ObjectProgress::OnDisk
                | ObjectProgress::Wanted
                | ObjectProgress::Fetching
                | ObjectProgress::Reserved { .. }
                | ObjectProgress::InMemory
                | ObjectProgress::Spilling
                | ObjectProgress::BringingBack => {
                    (ObjectProgress::BringingBack, ObjectStoreEffect::BringBack { object })
                }
            };
            self.change_progress(object, next);
            effects.push(effect);
        }
    }

    /// Whether so much is free, at once or after copies were dropped. If not, primaries are spilled, unless
    /// that would not be enough: then they may as well stay.
    fn make_room(&mut self, bytes: u64, effects: &mut StoreEffects) -> bool {
        let free = self.budget - self.memory;
        if bytes <= free {
            return true;
        }
        let leaving = self.spilling.iter().map(|it| &self.objects[it]);
        let leaving: u64 = leaving.filter(|it| !it.stays_in_memory()).map(|it| it.bytes).sum();
        let missing = bytes.saturating_sub(free + leaving);
        for object in self.victims(missing) {
            self.evict(object, effects);
        }
        bytes <= self.budget - self.memory
    }

    /// The cold objects that make room for so much; none if all of them do not.
    fn victims(&self, missing: u64) -> Vec<ObjectId> {
        if missing == 0 || self.cold_bytes < missing {
            return Vec::new();
        }
        let (mut victims, mut found) = (Vec::new(), 0);
        for object in self.cold.values() {
            let stored = &self.objects[object];
            if stored.kind == ObjectKind::Copy || self.spills == SpillPermission::Allowed {
                victims.push(*object);
                found += stored.bytes;
            }
            if found >= missing {
                return victims;
            }
        }
        Vec::new()
    }

    fn evict(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        let ObjectEntry { kind, bytes, last_use, .. } = self.objects[&object];
        match kind {
            ObjectKind::Copy => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
                effects.push(ObjectStoreEffect::CopyDropped { object });
                self.remove(object, StoreRefusal::Unknown, effects);
            }
            ObjectKind::Primary => {
                self.cold.remove(&last_use);
                self.cold_bytes -= bytes;
                self.change_progress(object, ObjectProgress::Spilling);
                effects.push(ObjectStoreEffect::Spill { object });
            }
        }
    }
}
