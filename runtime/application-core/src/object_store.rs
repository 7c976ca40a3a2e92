//! The objects of one node: which are in memory, which are on disk, and who waits for room.
//!
//! Memory has a budget. A maker reserves room before it takes memory, a reader wants an object that is there.
//! Where there is no room, objects that nobody maps leave memory, the least recently used first: *primaries*
//! are spilled to disk, *copies* of objects of other nodes are dropped. Whoever still finds no room waits in
//! order, until the shell says that it has waited long enough.
//!
//! Mapped objects stay and count, also when nobody holds them: the memory of a mapping cannot be taken.
//!
//! An object that is not here is *asked* for once, however many want it, and comes from another node.
//!
//! This file has what is asked of the store, `object_store_fetch` what concerns other nodes, `object_room`
//! how room is found.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use cohabit_types::RankId;

use crate::ids::ObjectId;
use crate::object_entry::{Holding, ObjectEntry, ObjectProgress};
use crate::object_store_effect::{ObjectKind, ObjectPlace, ObjectStoreEffect, StoreRefusal, TransferResult};
use crate::store_figures::{ObjectFigures, StoreFigures};

/// The store of one node.
#[derive(Debug)]
pub struct ObjectStore {
    pub(crate) budget: u64,
    /// Most objects at a time.
    pub(crate) most_objects: usize,
    /// Bytes of all objects that have memory.
    pub(crate) memory: u64,
    /// Bytes of all objects that have a spill file, without those that are being written.
    pub(crate) disk: u64,
    pub(crate) objects: BTreeMap<ObjectId, ObjectEntry>,
    /// Objects that may leave memory, by when they were last used.
    pub(crate) cold: BTreeMap<u64, ObjectId>,
    pub(crate) cold_bytes: u64,
    pub(crate) spilling: BTreeSet<ObjectId>,
    /// Objects that need room, in order: reservations, objects to fetch, and objects on disk that somebody
    /// wants.
    pub(crate) waiting: VecDeque<ObjectId>,
    /// Counts uses.
    pub(crate) last_use: u64,
    pub(crate) spills: SpillPermission,
}

/// Whether objects may be spilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpillPermission {
    Allowed,
    /// A spill has failed: the disk is probably full. The next request or freed disk space allows a new try.
    Suspended,
}

/// Where effects go.
pub(crate) type StoreEffects = Vec<ObjectStoreEffect>;

impl ObjectStore {
    /// An empty store with memory for so many bytes, which takes at most so many objects.
    #[must_use]
    pub const fn new(budget: u64, most_objects: usize) -> ObjectStore {
        ObjectStore {
            budget,
            most_objects,
            memory: 0,
            disk: 0,
            objects: BTreeMap::new(),
            cold: BTreeMap::new(),
            cold_bytes: 0,
            spilling: BTreeSet::new(),
            waiting: VecDeque::new(),
            last_use: 0,
            spills: SpillPermission::Allowed,
        }
    }

    /// Bytes in memory, those that are being filled or moved included.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.memory
    }

    /// Bytes on disk.
    #[must_use]
    pub const fn disk_bytes(&self) -> u64 {
        self.disk
    }

    /// What the store has, object by object.
    #[must_use]
    pub fn figures(&self) -> StoreFigures {
        let object = |(object, entry): (&ObjectId, &ObjectEntry)| ObjectFigures {
            object: *object,
            bytes: entry.bytes,
            kind: entry.kind,
            place: entry.progress.place(),
            mapped: entry.mapped.iter().map(|(member, count)| (*member, *count)).collect(),
        };
        let here = self.objects.iter().filter(|(_, it)| it.progress != ObjectProgress::Wanted);
        StoreFigures {
            budget: self.budget,
            memory: self.memory,
            disk: self.disk,
            objects: here.map(object).collect(),
            omitted: 0,
        }
    }

    /// Whether there is no object and nobody waits for one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether all bytes of an object are here, and somebody holds it.
    #[must_use]
    pub fn has(&self, object: ObjectId) -> bool {
        let stored = self.objects.get(&object);
        stored.is_some_and(|it| it.progress.is_complete() && it.holding == Holding::Held)
    }

    /// Whether this member has reserved the object and not filled it.
    #[must_use]
    pub fn is_made_by(&self, object: ObjectId, member: RankId) -> bool {
        self.progress(object).and_then(ObjectProgress::unfilled_by) == Some(member)
    }

    /// A maker wants to make an object: `Allocate` or `Refuse`, now or later. An object that somebody wants
    /// may be made here.
    pub fn reserve(
        &mut self,
        object: ObjectId,
        bytes: u64,
        kind: ObjectKind,
        maker: RankId,
        effects: &mut StoreEffects,
    ) {
        let wanted = self.progress(object);
        if wanted.is_some_and(|it| it != ObjectProgress::Wanted) {
            return effects.push(refusal(object, maker, StoreRefusal::Exists));
        }
        if wanted.is_none() && self.objects.len() >= self.most_objects {
            let reason = StoreRefusal::TooMany { limit: self.most_objects };
            return effects.push(refusal(object, maker, reason));
        }
        if bytes > self.budget {
            let reason = StoreRefusal::TooLarge { bytes, budget: self.budget };
            return effects.push(refusal(object, maker, reason));
        }
        let stored = self.objects.entry(object).or_insert_with(ObjectEntry::wanted);
        (stored.bytes, stored.kind) = (bytes, kind);
        self.change_progress(object, ObjectProgress::Awaiting { maker });
        self.wait_for_room(object, effects);
    }

    /// There was no memory for a reservation or a fetch, although the budget had room.
    pub fn not_allocated(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        match self.progress(object) {
            Some(ObjectProgress::Reserved { maker }) => {
                effects.push(refusal(object, maker, StoreRefusal::Full));
                self.end_making(object, effects);
            }
            Some(ObjectProgress::Fetching) => self.give_up_fetch(object, StoreRefusal::Full, effects),
            Some(_) | None => return,
        }
        self.advance(effects);
    }

    /// The maker has filled and sealed the memory.
    pub fn filled(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        if let Some(ObjectProgress::Reserved { .. }) = self.progress(object) {
            self.enter_memory(object, effects);
            self.advance(effects);
        }
    }

    /// A maker gives up an object: it waits for room, is being filled, or is complete and nobody else knows
    /// of it.
    pub fn abandoned(&mut self, object: ObjectId, maker: RankId, effects: &mut StoreEffects) {
        let Some(entry) = self.objects.get(&object) else { return };
        match entry.progress.unfilled_by() {
            Some(by) if by == maker => {
                self.abandon(object, effects);
                self.advance(effects);
            }
            Some(_) => {}
            None if entry.progress.is_complete() => self.free(object, effects),
            None => {}
        }
    }

    fn abandon(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        if let Some(ObjectProgress::Reserved { .. }) = self.progress(object) {
            effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
        }
        self.end_making(object, effects);
    }

    /// Nobody makes an object any more. Those who want it may get it from another node.
    fn end_making(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        let stored = &self.objects[&object];
        let is_wanted = stored.is_asked || !stored.readers.is_empty();
        if !is_wanted || stored.holding == Holding::Freed {
            self.remove(object, StoreRefusal::Freed, effects);
        } else {
            self.want_from_elsewhere(object, effects);
        }
    }

    /// A maker or a reader that waits for room has waited long enough. Nothing happens if it does not wait.
    pub fn timed_out(&mut self, object: ObjectId, by: RankId, effects: &mut StoreEffects) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        match stored.progress {
            ObjectProgress::Awaiting { maker } if maker == by => {
                effects.push(refusal(object, by, StoreRefusal::Full));
                self.end_making(object, effects);
            }
            ObjectProgress::Awaiting { .. } | ObjectProgress::AwaitingFetch | ObjectProgress::OnDisk => {
                let Some(place) = stored.readers.iter().position(|reader| *reader == by) else { return };
                stored.readers.remove(place);
                effects.push(refusal(object, by, StoreRefusal::Full));
                self.stop_waiting_without_readers(object, effects);
            }
            ObjectProgress::Wanted
            | ObjectProgress::Fetching
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::BringingBack => {}
        }
        self.advance(effects);
    }

    /// A reader wants an object: `HandOver`, `Refuse` or `Lose`, now or later.
    pub fn wanted(&mut self, object: ObjectId, by: RankId, effects: &mut StoreEffects) {
        let Some(stored) = self.objects.get_mut(&object) else {
            return self.wanted_from_elsewhere(object, by, effects);
        };
        if stored.holding == Holding::Freed {
            return effects.push(refusal(object, by, StoreRefusal::Unknown));
        }
        match stored.progress {
            ObjectProgress::Wanted | ObjectProgress::AwaitingFetch | ObjectProgress::Fetching => {
                stored.readers.push(by);
                effects.push(ObjectStoreEffect::AwaitFetch { object, to: by });
            }
            ObjectProgress::InMemory | ObjectProgress::Spilling => self.hand_over(object, by, effects),
            ObjectProgress::OnDisk if stored.readers.is_empty() => {
                stored.readers.push(by);
                self.wait_for_room(object, effects);
            }
            ObjectProgress::Awaiting { .. }
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::OnDisk
            | ObjectProgress::BringingBack => stored.readers.push(by),
        }
    }

    /// A member maps an object that was not handed over for it: as its maker, for example.
    pub fn mapped(&mut self, object: ObjectId, by: RankId) {
        if let Some(ObjectProgress::InMemory | ObjectProgress::Spilling) = self.progress(object) {
            self.add_mapping(object, by);
        }
    }

    /// One mapping by a member has ended.
    pub fn unmapped(&mut self, object: ObjectId, by: RankId, effects: &mut StoreEffects) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        let Some(count) = stored.mapped.get_mut(&by) else { return };
        *count -= 1;
        if *count == 0 {
            stored.mapped.remove(&by);
            self.settle(object, effects);
            self.advance(effects);
        }
    }

    /// A member has ended: it maps, makes and wants nothing any more.
    pub fn member_ended(&mut self, by: RankId, effects: &mut StoreEffects) {
        let objects: Vec<ObjectId> = self.objects.keys().copied().collect();
        for object in objects {
            let Some(stored) = self.objects.get_mut(&object) else { continue };
            stored.readers.retain(|reader| *reader != by);
            let was_mapped = stored.mapped.remove(&by).is_some();
            self.stop_waiting_without_readers(object, effects);
            if was_mapped {
                self.settle(object, effects);
            }
        }
        let of_member = |it: &ObjectEntry| it.progress.unfilled_by() == Some(by);
        let unfilled: Vec<ObjectId> =
            self.objects.iter().filter(|(_, it)| of_member(it)).map(|(object, _)| *object).collect();
        unfilled.into_iter().for_each(|object| self.abandon(object, effects));
        self.advance(effects);
    }

    /// A maker has ended, and of all that it named somebody holds these objects alone: the others are freed.
    pub fn forget(&mut self, maker: RankId, keep: &BTreeSet<ObjectId>, effects: &mut StoreEffects) {
        let named = ObjectId { maker, number: 0 }..=ObjectId { maker, number: u64::MAX };
        let objects = self.objects.range(named).map(|(object, _)| *object);
        let unheld: Vec<ObjectId> = objects.filter(|object| !keep.contains(object)).collect();
        unheld.into_iter().for_each(|object| self.free(object, effects));
    }

    /// Nobody holds an object any more. Its memory goes once no member maps it.
    pub fn free(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        stored.holding = Holding::Freed;
        let readers = mem::take(&mut stored.readers);
        refuse(object, readers, StoreRefusal::Freed, effects);
        match stored.progress {
            ObjectProgress::Awaiting { maker } => {
                effects.push(refusal(object, maker, StoreRefusal::Freed));
                self.remove(object, StoreRefusal::Freed, effects);
            }
            ObjectProgress::OnDisk => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk });
                self.remove(object, StoreRefusal::Freed, effects);
            }
            ObjectProgress::InMemory => self.settle(object, effects),
            ObjectProgress::Wanted => self.remove(object, StoreRefusal::Freed, effects),
            ObjectProgress::AwaitingFetch => self.give_up_fetch(object, StoreRefusal::Freed, effects),
            // Whoever works on it says when it has finished.
            ObjectProgress::Fetching
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::Spilling
            | ObjectProgress::BringingBack => {}
        }
        self.advance(effects);
    }

    /// A spill has ended.
    pub fn spilled(&mut self, object: ObjectId, result: TransferResult, effects: &mut StoreEffects) {
        if self.progress(object) != Some(ObjectProgress::Spilling) {
            return;
        }
        let stays = self.objects[&object].stays_in_memory();
        match result {
            TransferResult::Done if stays => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk });
                self.change_progress(object, ObjectProgress::InMemory);
                self.settle(object, effects);
            }
            TransferResult::Done => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
                self.change_progress(object, ObjectProgress::OnDisk);
            }
            TransferResult::Failed => {
                self.spills = SpillPermission::Suspended;
                self.change_progress(object, ObjectProgress::InMemory);
                // As if it had been used: the next try is another object, which may be smaller.
                self.use_now(object);
                self.settle(object, effects);
            }
        }
        self.advance(effects);
    }

    /// An object has come back from disk, or not.
    pub fn brought_back(&mut self, object: ObjectId, result: TransferResult, effects: &mut StoreEffects) {
        if self.progress(object) != Some(ObjectProgress::BringingBack) {
            return;
        }
        match result {
            TransferResult::Done => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk });
                self.enter_memory(object, effects);
            }
            TransferResult::Failed => {
                self.change_progress(object, ObjectProgress::OnDisk);
                let stored = self.objects.get_mut(&object).expect("it is there");
                let readers = mem::take(&mut stored.readers);
                refuse(object, readers, StoreRefusal::Unreadable, effects);
                if stored.holding == Holding::Freed {
                    effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk });
                    self.remove(object, StoreRefusal::Freed, effects);
                }
            }
        }
        self.advance(effects);
    }

    /// Checks what always holds.
    ///
    /// # Errors
    /// In words, if something does not.
    pub fn check(&self) -> Result<(), String> {
        let sum = |of: fn(&ObjectEntry) -> bool| -> u64 {
            self.objects.values().filter(|it| of(it)).map(|it| it.bytes).sum()
        };
        let demand = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {self:?}")) };
        demand(self.memory <= self.budget, "more memory than the budget")?;
        demand(self.objects.len() <= self.most_objects, "more objects than the limit")?;
        demand(self.memory == sum(|it| it.progress.has_memory()), "memory is counted wrongly")?;
        demand(self.disk == sum(|it| it.progress.is_on_disk()), "disk is counted wrongly")?;
        demand(self.cold_bytes == sum(ObjectEntry::is_cold), "cold bytes are counted wrongly")?;
        let cold = self.objects.values().filter(|it| it.is_cold()).count();
        demand(self.cold.len() == cold, "other objects than the cold ones may leave")?;
        let spilling = self.objects.values().filter(|it| it.progress == ObjectProgress::Spilling).count();
        demand(self.spilling.len() == spilling, "spills are forgotten")?;
        let in_queue: BTreeSet<ObjectId> = self.waiting.iter().copied().collect();
        demand(in_queue.len() == self.waiting.len(), "an object waits twice")?;
        for (object, stored) in &self.objects {
            if stored.needs_room() != in_queue.contains(object) || !stored.is_possible() {
                return Err(format!("{object} is in an impossible state: {self:?}"));
            }
        }
        let first = self.waiting.front().map_or(u64::MAX, |it| self.objects[it].bytes);
        demand(first > self.budget - self.memory, "the first that waits has room")
    }

    pub(crate) fn progress(&self, object: ObjectId) -> Option<ObjectProgress> {
        self.objects.get(&object).map(|it| it.progress)
    }

    /// A complete object is in memory alone: its readers get it.
    pub(crate) fn enter_memory(&mut self, object: ObjectId, effects: &mut StoreEffects) {
        self.change_progress(object, ObjectProgress::InMemory);
        self.use_now(object);
        let stored = self.objects.get_mut(&object).expect("it is there");
        for reader in mem::take(&mut stored.readers) {
            self.hand_over(object, reader, effects);
        }
        self.settle(object, effects);
    }

    fn hand_over(&mut self, object: ObjectId, to: RankId, effects: &mut StoreEffects) {
        self.add_mapping(object, to);
        effects.push(ObjectStoreEffect::HandOver { object, to });
    }

    fn add_mapping(&mut self, object: ObjectId, by: RankId) {
        self.use_now(object);
        let stored = self.objects.get_mut(&object).expect("it is there");
        *stored.mapped.entry(by).or_insert(0) += 1;
    }
}

pub(crate) const fn refusal(object: ObjectId, to: RankId, reason: StoreRefusal) -> ObjectStoreEffect {
    ObjectStoreEffect::Refuse { object, to, reason }
}

pub(crate) fn refuse(
    object: ObjectId,
    readers: Vec<RankId>,
    reason: StoreRefusal,
    effects: &mut StoreEffects,
) {
    effects.extend(readers.into_iter().map(|to| refusal(object, to, reason)));
}
