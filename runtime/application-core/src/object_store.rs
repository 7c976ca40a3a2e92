//! The objects of one node: which are in memory, which are on disk, and who waits for room.
//!
//! Memory has a budget. A maker reserves room before it takes memory, a reader wants an object that is there.
//! Where there is no room, objects that nobody maps leave memory, the least recently used first: *primaries*
//! are spilled to disk, *copies* of objects of other nodes are dropped. Whoever still finds no room waits in
//! order, until the shell says that it has waited long enough.
//!
//! Mapped objects stay and count, also when nobody holds them: the memory of a mapping cannot be taken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use cohabit_types::AttemptId;

use crate::ids::ObjectId;
use crate::object_store_effect::{ObjectKind, ObjectPlace, ObjectStoreEffect, StoreRefusal, TransferResult};

/// The store of one node.
#[derive(Debug)]
pub struct ObjectStore {
    budget: u64,
    /// Bytes of all objects that have memory.
    memory: u64,
    /// Bytes of all objects that have a spill file, without those that are being written.
    disk: u64,
    objects: BTreeMap<ObjectId, StoredObject>,
    /// Objects that may leave memory, by when they were last used.
    cold: BTreeMap<u64, ObjectId>,
    cold_bytes: u64,
    spilling: BTreeSet<ObjectId>,
    /// Objects that need room, in order: reservations, and objects on disk that somebody wants.
    waiting: VecDeque<ObjectId>,
    /// Counts uses.
    last_use: u64,
    spills: SpillPermission,
}

/// Whether objects may be spilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpillPermission {
    Allowed,
    /// A spill has failed: the disk is probably full. The next request or freed disk space allows a new try.
    Suspended,
}

#[derive(Debug)]
struct StoredObject {
    bytes: u64,
    kind: ObjectKind,
    progress: Progress,
    holding: Holding,
    /// Mappings by member. Memory that is mapped stays.
    mapped: BTreeMap<AttemptId, u64>,
    /// Readers that wait for it, in order; one may wait several times.
    readers: Vec<AttemptId>,
    /// Its key among the cold objects, when it is one.
    last_use: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Its maker waits for room.
    Awaiting {
        maker: AttemptId,
    },
    /// Its maker has memory and fills it.
    Reserved {
        maker: AttemptId,
    },
    InMemory,
    /// It is in memory, and its spill file is being written.
    Spilling,
    OnDisk,
    /// It is on disk, and is being copied to memory.
    BringingBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    Held,
    /// Nobody holds it: it goes once nothing is done with it.
    Freed,
}

impl Progress {
    const fn has_memory(self) -> bool {
        match self {
            Progress::Reserved { .. } | Progress::InMemory | Progress::Spilling | Progress::BringingBack => {
                true
            }
            Progress::Awaiting { .. } | Progress::OnDisk => false,
        }
    }

    const fn is_on_disk(self) -> bool {
        match self {
            Progress::OnDisk | Progress::BringingBack => true,
            Progress::Awaiting { .. }
            | Progress::Reserved { .. }
            | Progress::InMemory
            | Progress::Spilling => false,
        }
    }
}

/// Where effects go.
type Effects = Vec<ObjectStoreEffect>;

impl ObjectStore {
    /// An empty store with memory for so many bytes.
    #[must_use]
    pub const fn new(budget: u64) -> ObjectStore {
        ObjectStore {
            budget,
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

    /// Whether there is no object and nobody waits for one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// A maker wants to make an object: `Allocate` or `Refuse`, now or later.
    pub fn reserve(
        &mut self,
        object: ObjectId,
        bytes: u64,
        kind: ObjectKind,
        maker: AttemptId,
        effects: &mut Effects,
    ) {
        if self.objects.contains_key(&object) {
            return effects.push(refusal(object, maker, StoreRefusal::Exists));
        }
        if bytes > self.budget {
            let reason = StoreRefusal::TooLarge { bytes, budget: self.budget };
            return effects.push(refusal(object, maker, reason));
        }
        let stored = StoredObject {
            bytes,
            kind,
            progress: Progress::Awaiting { maker },
            holding: Holding::Held,
            mapped: BTreeMap::new(),
            readers: Vec::new(),
            last_use: 0,
        };
        self.objects.insert(object, stored);
        self.wait_for_room(object, effects);
    }

    /// There was no memory for a reservation, although the budget had room.
    pub fn not_allocated(&mut self, object: ObjectId, effects: &mut Effects) {
        let Some(Progress::Reserved { maker }) = self.progress(object) else { return };
        effects.push(refusal(object, maker, StoreRefusal::Full));
        self.remove(object, StoreRefusal::Abandoned, effects);
        self.advance(effects);
    }

    /// The maker has filled and sealed the memory.
    pub fn filled(&mut self, object: ObjectId, effects: &mut Effects) {
        if let Some(Progress::Reserved { .. }) = self.progress(object) {
            self.enter_memory(object, effects);
            self.advance(effects);
        }
    }

    /// A maker will not fill what it has reserved and not filled.
    pub fn abandoned(&mut self, maker: AttemptId, effects: &mut Effects) {
        let of_maker = |it: &StoredObject| match it.progress {
            Progress::Awaiting { maker: by } | Progress::Reserved { maker: by } => by == maker,
            Progress::InMemory | Progress::Spilling | Progress::OnDisk | Progress::BringingBack => false,
        };
        let unfilled: Vec<ObjectId> =
            self.objects.iter().filter(|(_, it)| of_maker(it)).map(|(object, _)| *object).collect();
        for object in unfilled {
            if let Some(Progress::Reserved { .. }) = self.progress(object) {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
            }
            self.remove(object, StoreRefusal::Abandoned, effects);
        }
        self.advance(effects);
    }

    /// A maker or a reader that waits for room has waited long enough. Nothing happens if it does not wait.
    pub fn timed_out(&mut self, object: ObjectId, by: AttemptId, effects: &mut Effects) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        match stored.progress {
            Progress::Awaiting { maker } if maker == by => {
                effects.push(refusal(object, by, StoreRefusal::Full));
                self.remove(object, StoreRefusal::Full, effects);
            }
            Progress::Awaiting { .. } | Progress::OnDisk => {
                let Some(place) = stored.readers.iter().position(|reader| *reader == by) else { return };
                stored.readers.remove(place);
                effects.push(refusal(object, by, StoreRefusal::Full));
                self.stop_waiting_without_readers(object);
            }
            Progress::Reserved { .. } | Progress::InMemory | Progress::Spilling | Progress::BringingBack => {}
        }
        self.advance(effects);
    }

    /// A reader wants an object: `HandOver` or `Refuse`, now or later.
    pub fn wanted(&mut self, object: ObjectId, by: AttemptId, effects: &mut Effects) {
        let held = self.objects.get_mut(&object).filter(|it| it.holding == Holding::Held);
        let Some(stored) = held else {
            return effects.push(refusal(object, by, StoreRefusal::Unknown));
        };
        match stored.progress {
            Progress::InMemory | Progress::Spilling => self.hand_over(object, by, effects),
            Progress::OnDisk if stored.readers.is_empty() => {
                stored.readers.push(by);
                self.wait_for_room(object, effects);
            }
            Progress::Awaiting { .. }
            | Progress::Reserved { .. }
            | Progress::OnDisk
            | Progress::BringingBack => stored.readers.push(by),
        }
    }

    /// A member maps an object that was not handed over for it: as its maker, for example.
    pub fn mapped(&mut self, object: ObjectId, by: AttemptId) {
        if let Some(Progress::InMemory | Progress::Spilling) = self.progress(object) {
            self.add_mapping(object, by);
        }
    }

    /// One mapping by a member has ended.
    pub fn unmapped(&mut self, object: ObjectId, by: AttemptId, effects: &mut Effects) {
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
    pub fn member_ended(&mut self, by: AttemptId, effects: &mut Effects) {
        let objects: Vec<ObjectId> = self.objects.keys().copied().collect();
        for object in objects {
            let Some(stored) = self.objects.get_mut(&object) else { continue };
            stored.readers.retain(|reader| *reader != by);
            let was_mapped = stored.mapped.remove(&by).is_some();
            self.stop_waiting_without_readers(object);
            if was_mapped {
                self.settle(object, effects);
            }
        }
        self.abandoned(by, effects);
    }

    /// Nobody holds an object any more. Its memory goes once no member maps it.
    pub fn free(&mut self, object: ObjectId, effects: &mut Effects) {
        let Some(stored) = self.objects.get_mut(&object) else { return };
        stored.holding = Holding::Freed;
        let readers = mem::take(&mut stored.readers);
        refuse(object, readers, StoreRefusal::Freed, effects);
        match stored.progress {
            Progress::Awaiting { maker } => {
                effects.push(refusal(object, maker, StoreRefusal::Freed));
                self.remove(object, StoreRefusal::Freed, effects);
            }
            Progress::OnDisk => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk });
                self.remove(object, StoreRefusal::Freed, effects);
            }
            Progress::InMemory => self.settle(object, effects),
            // Whoever works on it says when it has finished.
            Progress::Reserved { .. } | Progress::Spilling | Progress::BringingBack => {}
        }
        self.advance(effects);
    }

    /// A spill has ended.
    pub fn spilled(&mut self, object: ObjectId, result: TransferResult, effects: &mut Effects) {
        if self.progress(object) != Some(Progress::Spilling) {
            return;
        }
        let stays = self.objects[&object].stays_in_memory();
        match result {
            TransferResult::Done if stays => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk });
                self.change_progress(object, Progress::InMemory);
                self.settle(object, effects);
            }
            TransferResult::Done => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
                self.change_progress(object, Progress::OnDisk);
            }
            TransferResult::Failed => {
                self.spills = SpillPermission::Suspended;
                self.change_progress(object, Progress::InMemory);
                // As if it had been used: the next try is another object, which may be smaller.
                self.use_now(object);
                self.settle(object, effects);
            }
        }
        self.advance(effects);
    }

    /// An object has come back from disk, or not.
    pub fn brought_back(&mut self, object: ObjectId, result: TransferResult, effects: &mut Effects) {
        if self.progress(object) != Some(Progress::BringingBack) {
            return;
        }
        match result {
            TransferResult::Done => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk });
                self.enter_memory(object, effects);
            }
            TransferResult::Failed => {
                self.change_progress(object, Progress::OnDisk);
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
        let sum = |of: fn(&StoredObject) -> bool| -> u64 {
            self.objects.values().filter(|it| of(it)).map(|it| it.bytes).sum()
        };
        let demand = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {self:?}")) };
        demand(self.memory <= self.budget, "more memory than the budget")?;
        demand(self.memory == sum(|it| it.progress.has_memory()), "memory is counted wrongly")?;
        demand(self.disk == sum(|it| it.progress.is_on_disk()), "disk is counted wrongly")?;
        demand(self.cold_bytes == sum(StoredObject::is_cold), "cold bytes are counted wrongly")?;
        let cold = self.objects.values().filter(|it| it.is_cold()).count();
        demand(self.cold.len() == cold, "other objects than the cold ones may leave")?;
        let spilling = self.objects.values().filter(|it| it.progress == Progress::Spilling).count();
        demand(self.spilling.len() == spilling, "spills are forgotten")?;
        let in_queue: BTreeSet<ObjectId> = self.waiting.iter().copied().collect();
        demand(in_queue.len() == self.waiting.len(), "an object waits twice")?;
        for (object, stored) in &self.objects {
            demand(stored.needs_room() == in_queue.contains(object), &format!("{object} and the queue"))?;
            demand(stored.is_possible(), &format!("{object} is in an impossible state"))?;
        }
        let first = self.waiting.front().map_or(u64::MAX, |it| self.objects[it].bytes);
        demand(first > self.budget - self.memory, "the first that waits has room")
    }

    fn progress(&self, object: ObjectId) -> Option<Progress> {
        self.objects.get(&object).map(|it| it.progress)
    }

    /// Changes where an object is, and counts its bytes there.
    fn change_progress(&mut self, object: ObjectId, progress: Progress) {
        let stored = self.objects.get_mut(&object).expect("only objects that are there change");
        let (before, bytes) = (mem::replace(&mut stored.progress, progress), stored.bytes);
        self.count(before, Some(progress), bytes);
        match progress {
            Progress::Spilling => _ = self.spilling.insert(object),
            Progress::Awaiting { .. }
            | Progress::Reserved { .. }
            | Progress::InMemory
            | Progress::OnDisk
            | Progress::BringingBack => _ = self.spilling.remove(&object),
        }
    }

    fn count(&mut self, before: Progress, after: Option<Progress>, bytes: u64) {
        let change = |had: bool, has: bool, total: u64| match (had, has) {
            (false, true) => total + bytes,
            (true, false) => total - bytes,
            (true, true) | (false, false) => total,
        };
        self.memory = change(before.has_memory(), after.is_some_and(Progress::has_memory), self.memory);
        self.disk = change(before.is_on_disk(), after.is_some_and(Progress::is_on_disk), self.disk);
        if before.is_on_disk() && !after.is_some_and(Progress::is_on_disk) {
            self.spills = SpillPermission::Allowed;
        }
    }

    /// Forgets an object; its effects have been pushed. Readers that still wait are told the reason.
    fn remove(&mut self, object: ObjectId, reason: StoreRefusal, effects: &mut Effects) {
        let Some(stored) = self.objects.remove(&object) else { return };
        self.count(stored.progress, None, stored.bytes);
        self.spilling.remove(&object);
        self.waiting.retain(|it| *it != object);
        if self.cold.remove(&stored.last_use).is_some() {
            self.cold_bytes -= stored.bytes;
        }
        refuse(object, stored.readers, reason, effects);
    }

    /// A complete object is in memory alone: its readers get it.
    fn enter_memory(&mut self, object: ObjectId, effects: &mut Effects) {
        self.change_progress(object, Progress::InMemory);
        self.use_now(object);
        let stored = self.objects.get_mut(&object).expect("it is there");
        for reader in mem::take(&mut stored.readers) {
            self.hand_over(object, reader, effects);
        }
        self.settle(object, effects);
    }

    fn hand_over(&mut self, object: ObjectId, to: AttemptId, effects: &mut Effects) {
        self.add_mapping(object, to);
        effects.push(ObjectStoreEffect::HandOver { object, to });
    }

    fn add_mapping(&mut self, object: ObjectId, by: AttemptId) {
        self.use_now(object);
        let stored = self.objects.get_mut(&object).expect("it is there");
        *stored.mapped.entry(by).or_insert(0) += 1;
    }

    /// Counts a use. The object is not cold for now.
    fn use_now(&mut self, object: ObjectId) {
        self.last_use += 1;
        let stored = self.objects.get_mut(&object).expect("it is there");
        let before = mem::replace(&mut stored.last_use, self.last_use);
        if self.cold.remove(&before).is_some() {
            self.cold_bytes -= stored.bytes;
        }
    }

    /// An object in memory that nobody maps is cold if it is held, and goes if it is not.
    fn settle(&mut self, object: ObjectId, effects: &mut Effects) {
        let stored = &self.objects[&object];
        if stored.progress != Progress::InMemory || !stored.mapped.is_empty() {
            return;
        }
        match stored.holding {
            Holding::Held => {
                if self.cold.insert(stored.last_use, object).is_none() {
                    self.cold_bytes += stored.bytes;
                }
            }
            Holding::Freed => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
                self.remove(object, StoreRefusal::Freed, effects);
            }
        }
    }

    /// Puts an object at the end of those that need room. A new request is a reason to try the disk again.
    fn wait_for_room(&mut self, object: ObjectId, effects: &mut Effects) {
        self.waiting.push_back(object);
        self.spills = SpillPermission::Allowed;
        self.advance(effects);
    }

    fn stop_waiting_without_readers(&mut self, object: ObjectId) {
        let stored = &self.objects[&object];
        if stored.progress == Progress::OnDisk && stored.readers.is_empty() {
            self.waiting.retain(|it| *it != object);
        }
    }

    /// Gives room to those that wait, in order, and starts spills for the first that finds none.
    fn advance(&mut self, effects: &mut Effects) {
        while let Some(object) = self.waiting.front().copied() {
            let StoredObject { bytes, progress, .. } = self.objects[&object];
            if !self.make_room(bytes, effects) {
                return;
            }
            self.waiting.pop_front();
            if let Progress::Awaiting { maker } = progress {
                self.change_progress(object, Progress::Reserved { maker });
                effects.push(ObjectStoreEffect::Allocate { object, bytes, maker });
            } else {
                self.change_progress(object, Progress::BringingBack);
                effects.push(ObjectStoreEffect::BringBack { object });
            }
        }
    }

    /// Whether so much is free, at once or after copies were dropped. If not, primaries are spilled, unless
    /// that would not be enough: then they may as well stay.
    fn make_room(&mut self, bytes: u64, effects: &mut Effects) -> bool {
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

    fn evict(&mut self, object: ObjectId, effects: &mut Effects) {
        let StoredObject { kind, bytes, last_use, .. } = self.objects[&object];
        match kind {
            ObjectKind::Copy => {
                effects.push(ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory });
                self.remove(object, StoreRefusal::Unknown, effects);
            }
            ObjectKind::Primary => {
                self.cold.remove(&last_use);
                self.cold_bytes -= bytes;
                self.change_progress(object, Progress::Spilling);
                effects.push(ObjectStoreEffect::Spill { object });
            }
        }
    }
}

impl StoredObject {
    /// Whether it stays in memory although its spill file is complete.
    fn stays_in_memory(&self) -> bool {
        !self.mapped.is_empty() || self.holding == Holding::Freed
    }

    fn is_cold(&self) -> bool {
        self.progress == Progress::InMemory && !self.stays_in_memory()
    }

    fn needs_room(&self) -> bool {
        match self.progress {
            Progress::Awaiting { .. } => true,
            Progress::OnDisk => !self.readers.is_empty(),
            Progress::Reserved { .. } | Progress::InMemory | Progress::Spilling | Progress::BringingBack => {
                false
            }
        }
    }

    /// Whether what is said of it fits together.
    fn is_possible(&self) -> bool {
        let (is_freed, is_mapped) = (self.holding == Holding::Freed, !self.mapped.is_empty());
        let counts_fit = self.mapped.values().all(|count| *count > 0);
        counts_fit
            && match self.progress {
                Progress::Awaiting { .. } | Progress::OnDisk => !is_freed && !is_mapped,
                Progress::Reserved { .. } | Progress::BringingBack => !is_mapped,
                Progress::InMemory => self.readers.is_empty() && (is_mapped || !is_freed),
                Progress::Spilling => self.readers.is_empty() && self.kind == ObjectKind::Primary,
            }
    }
}

fn refusal(object: ObjectId, to: AttemptId, reason: StoreRefusal) -> ObjectStoreEffect {
    ObjectStoreEffect::Refuse { object, to, reason }
}

fn refuse(object: ObjectId, readers: Vec<AttemptId>, reason: StoreRefusal, effects: &mut Effects) {
    effects.extend(readers.into_iter().map(|to| refusal(object, to, reason)));
}
