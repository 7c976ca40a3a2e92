//! Scenarios of a store, with their effects as whole lists.

use std::collections::BTreeSet;

use cohabit_types::RankId;

use super::super::kit::{effects, member};
use crate::ObjectKind::{Copy, Primary};
use crate::ObjectPlace::{Disk, Memory};
use crate::ObjectStoreEffect::{
    Allocate, Ask, AwaitFetch, BringBack, CopyDropped, Drop, HandOver, Refuse, Spill,
};
use crate::TransferResult::{Done, Failed};
use crate::{
    ObjectFigures, ObjectId, ObjectKind, ObjectPlace, ObjectStore, ObjectStoreEffect, StoreRefusal,
    TransferResult,
};

const MIB: u64 = 1 << 20;
pub(super) const MAKER: RankId = member(2);
pub(super) const READER: RankId = member(3);
const MOST: usize = 100;

pub(super) const fn object(number: u64) -> ObjectId {
    ObjectId { maker: member(1), number }
}

pub(super) fn allocate(number: u64, bytes: u64) -> ObjectStoreEffect {
    Allocate { object: object(number), bytes, maker: MAKER }
}

pub(super) fn hand_over(number: u64) -> ObjectStoreEffect {
    HandOver { object: object(number), to: READER }
}

pub(super) fn drop_at(number: u64, place: ObjectPlace) -> ObjectStoreEffect {
    Drop { object: object(number), place }
}

pub(super) fn refuse(number: u64, to: RankId, reason: StoreRefusal) -> ObjectStoreEffect {
    Refuse { object: object(number), to, reason }
}

pub(super) fn spill(number: u64) -> ObjectStoreEffect {
    Spill { object: object(number) }
}

pub(super) fn bring_back(number: u64) -> ObjectStoreEffect {
    BringBack { object: object(number) }
}

/// A store whose steps are checked.
pub(super) struct CheckedStore(pub(super) ObjectStore);

impl CheckedStore {
    /// With one object of ten bytes for each of these kinds, from 1.
    pub(super) fn filled_with(budget: u64, kinds: &[ObjectKind]) -> CheckedStore {
        let mut store = CheckedStore(ObjectStore::new(budget, MOST));
        for (number, kind) in (1..).zip(kinds) {
            let reserved = store.step(|it, out| it.reserve(object(number), 10, *kind, MAKER, out));
            assert_eq!(reserved, [allocate(number, 10)]);
            assert_eq!(store.step(|it, out| it.filled(object(number), out)), []);
        }
        store
    }

    pub(super) fn step(
        &mut self,
        step: impl FnOnce(&mut ObjectStore, &mut Vec<ObjectStoreEffect>),
    ) -> Vec<ObjectStoreEffect> {
        let effects = effects(|out| step(&mut self.0, out));
        self.0.check().unwrap();
        effects
    }

    pub(super) fn reserve(&mut self, number: u64, bytes: u64) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.reserve(object(number), bytes, Primary, MAKER, out))
    }

    pub(super) fn wanted(&mut self, number: u64) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.wanted(object(number), READER, out))
    }

    pub(super) fn unmapped(&mut self, number: u64) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.unmapped(object(number), READER, out))
    }

    pub(super) fn spilled(&mut self, number: u64, result: TransferResult) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.spilled(object(number), result, out))
    }

    pub(super) fn brought_back(&mut self, number: u64, result: TransferResult) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.brought_back(object(number), result, out))
    }

    pub(super) fn free(&mut self, number: u64) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.free(object(number), out))
    }

    pub(super) fn filled(&mut self, number: u64) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.filled(object(number), out))
    }

    pub(super) fn timed_out(&mut self, number: u64, by: RankId) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.timed_out(object(number), by, out))
    }

    /// Bytes in memory and on disk.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.0.memory_bytes(), self.0.disk_bytes())
    }
}

#[test]
fn a_full_store_spills() {
    let size = 16 * MIB;
    let mut store = CheckedStore(ObjectStore::new(64 * MIB, MOST));
    for number in 1..=16 {
        let reserved = store.reserve(number, size);
        if number <= 4 {
            assert_eq!(reserved, [allocate(number, size)]);
        } else {
            assert_eq!(reserved, [spill(number - 4)]);
            let spilled = store.spilled(number - 4, Done);
            assert_eq!(spilled, [drop_at(number - 4, Memory), allocate(number, size)]);
        }
        assert_eq!(store.filled(number), []);
    }
    assert_eq!(store.bytes(), (64 * MIB, 192 * MIB));
    for number in 1..=16 {
        assert_eq!(store.wanted(number), [spill((number + 11) % 16 + 1)]);
        let spilled = store.spilled((number + 11) % 16 + 1, Done);
        assert_eq!(spilled, [drop_at((number + 11) % 16 + 1, Memory), bring_back(number)]);
        assert_eq!(store.brought_back(number, Done), [drop_at(number, Disk), hand_over(number)]);
        assert_eq!(store.unmapped(number), []);
        assert_eq!(store.bytes(), (64 * MIB, 192 * MIB));
    }
    for number in 1..=16 {
        let place = if number <= 12 { Disk } else { Memory };
        assert_eq!(store.free(number), [drop_at(number, place)]);
    }
    assert_eq!(store.bytes(), (0, 0));
    assert!(store.0.is_empty());
}

#[test]
fn mapped_objects_stay_and_their_readers_are_waited_for() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    assert_eq!(store.wanted(1), [hand_over(1)]);
    assert_eq!(store.wanted(1), [hand_over(1)]);
    assert_eq!(store.reserve(3, 20), [], "the other object alone does not make enough room");
    assert_eq!(store.unmapped(1), []);
    assert_eq!(store.unmapped(1), [spill(2), spill(1)], "the least recently used first");
    assert_eq!(store.spilled(2, Done), [drop_at(2, Memory)]);
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), allocate(3, 20)]);
    assert_eq!(store.bytes(), (20, 20));
}

#[test]
fn an_object_that_its_maker_maps_stays() {
    let mut store = CheckedStore::filled_with(10, &[Primary]);
    store.0.mapped(object(1), MAKER);
    assert_eq!(store.reserve(2, 10), []);
    assert_eq!(store.step(|it, out| it.unmapped(object(1), MAKER, out)), [spill(1)]);
    store.0.mapped(object(2), MAKER);
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), allocate(2, 10)]);
}

#[test]
fn copies_are_dropped_instead() {
    let mut store = CheckedStore::filled_with(20, &[Copy, Copy]);
    let dropped = CopyDropped { object: object(1) };
    assert_eq!(store.reserve(3, 10), [drop_at(1, Memory), dropped, allocate(3, 10)]);
    let awaited = AwaitFetch { object: object(1), to: READER };
    assert_eq!(store.wanted(1), [awaited, Ask { object: object(1) }], "it is on another node");
    assert_eq!(store.wanted(2), [hand_over(2)]);
    assert_eq!(store.bytes(), (20, 0));
}

#[test]
fn an_object_that_is_read_while_it_is_spilled_stays() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    assert_eq!(store.reserve(3, 10), [spill(1)]);
    assert_eq!(store.wanted(1), [hand_over(1)]);
    assert_eq!(store.spilled(1, Done), [drop_at(1, Disk), spill(2)]);
    assert_eq!(store.spilled(2, Done), [drop_at(2, Memory), allocate(3, 10)]);
    assert_eq!(store.bytes(), (20, 10));
}

#[test]
fn those_that_wait_get_room_in_order() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    assert_eq!([store.wanted(1), store.wanted(2)].concat(), [hand_over(1), hand_over(2)]);
    assert_eq!(store.reserve(3, 20), []);
    assert_eq!(store.reserve(4, 10), []);
    assert_eq!(store.unmapped(1), [], "the later one does not overtake");
    assert_eq!(store.timed_out(3, MAKER), [refuse(3, MAKER, StoreRefusal::Full), spill(1)]);
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), allocate(4, 10)]);
    assert_eq!(store.timed_out(4, MAKER), [], "it has its memory");
    assert_eq!(store.wanted(1), []);
    assert_eq!(store.timed_out(1, READER), [refuse(1, READER, StoreRefusal::Full)]);
    assert_eq!(store.unmapped(2), [], "nobody needs room any more");
}

#[test]
fn a_full_disk_loses_nothing_and_makes_makers_wait() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    assert_eq!(store.reserve(3, 10), [spill(1)]);
    assert_eq!(store.spilled(1, Failed), [], "no endless tries");
    assert_eq!(store.bytes(), (20, 0));
    assert_eq!(store.reserve(4, 10), [spill(2)], "a new request, a new try, another object");
    assert_eq!(store.spilled(2, Failed), []);
    assert_eq!(store.timed_out(3, MAKER), [refuse(3, MAKER, StoreRefusal::Full)]);
    assert_eq!(store.timed_out(4, MAKER), [refuse(4, MAKER, StoreRefusal::Full)]);
    assert_eq!([store.wanted(1), store.wanted(2)].concat(), [hand_over(1), hand_over(2)]);
}

#[test]
fn freed_disk_space_is_a_reason_to_spill_again() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    assert_eq!(store.reserve(3, 10), [spill(1)]);
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), allocate(3, 10)]);
    assert_eq!(store.reserve(4, 10), [spill(2)]);
    assert_eq!(store.spilled(2, Failed), []);
    assert_eq!(store.free(1), [drop_at(1, Disk), spill(2)]);
}

#[test]
fn what_never_fits_or_is_there_already_is_refused_at_once() {
    let mut store = CheckedStore::filled_with(20, &[Primary]);
    let reason = StoreRefusal::TooLarge { bytes: 21, budget: 20 };
    assert_eq!(store.reserve(2, 21), [refuse(2, MAKER, reason)]);
    assert_eq!(store.reserve(1, 1), [refuse(1, MAKER, StoreRefusal::Exists)]);
    assert_eq!(store.reserve(3, 0), [allocate(3, 0)]);
    assert_eq!(reason.to_string(), "the object has 21 bytes, and all objects of a node may have 20");
}

#[test]
fn a_reader_waits_for_an_object_that_is_being_made() {
    let mut store = CheckedStore(ObjectStore::new(20, MOST));
    store.reserve(1, 10);
    assert_eq!(store.wanted(1), []);
    assert_eq!(store.filled(1), [hand_over(1)]);
    store.reserve(2, 10);
    store.wanted(2);
    let abandoned = store.step(|it, out| it.abandoned(object(2), MAKER, out));
    let awaited = AwaitFetch { object: object(2), to: READER };
    let ask = Ask { object: object(2) };
    assert_eq!(abandoned, [drop_at(2, Memory), awaited, ask], "another node may have it");
    store.reserve(3, 10);
    assert_eq!(
        store.step(|it, out| it.not_allocated(object(3), out)),
        [refuse(3, MAKER, StoreRefusal::Full)]
    );
    assert_eq!(store.bytes(), (10, 0));
}

#[test]
fn nothing_is_left_of_a_member_that_has_ended() {
    let mut store = CheckedStore::filled_with(30, &[Primary, Primary]);
    store.wanted(1);
    store.wanted(1);
    store.wanted(2);
    assert_eq!(store.reserve(3, 10), [allocate(3, 10)]);
    assert_eq!(store.reserve(4, 20), []);
    let ended = store.step(|it, out| it.member_ended(MAKER, out));
    assert_eq!(ended, [drop_at(3, Memory)], "the one that waits is forgotten");
    let own = member(4);
    let reserved = store.step(|it, out| it.reserve(object(5), 30, Primary, own, out));
    assert_eq!(reserved, []);
    assert_eq!(store.free(2), []);
    let ended = store.step(|it, out| it.member_ended(READER, out));
    assert_eq!(ended, [drop_at(2, Memory), spill(1)]);
    assert_eq!(store.bytes(), (10, 0));
}

#[test]
fn a_freed_object_goes_once_nothing_is_done_with_it() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    store.wanted(1);
    assert_eq!(store.free(1), [], "a reader maps it");
    assert_eq!(store.wanted(1), [refuse(1, READER, StoreRefusal::Unknown)]);
    assert_eq!(store.unmapped(1), [drop_at(1, Memory)]);
    assert_eq!(store.reserve(3, 20), [spill(2)]);
    assert_eq!(store.free(2), []);
    assert_eq!(store.spilled(2, Done), [drop_at(2, Disk), drop_at(2, Memory), allocate(3, 20)]);
    assert_eq!(store.free(3), [], "its maker has the memory");
    assert_eq!(store.filled(3), [drop_at(3, Memory)]);
    assert!(store.0.is_empty());
}

#[test]
fn an_object_that_is_freed_on_its_way_back_goes() {
    for result in [Done, Failed] {
        let mut store = CheckedStore::filled_with(10, &[Primary]);
        assert_eq!(store.reserve(2, 10), [spill(1)]);
        assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), allocate(2, 10)]);
        assert_eq!(store.wanted(1), []);
        assert_eq!(store.free(2), []);
        assert_eq!(store.filled(2), [drop_at(2, Memory), bring_back(1)]);
        assert_eq!(store.free(1), [refuse(1, READER, StoreRefusal::Freed)]);
        let dropped = match result {
            Done => vec![drop_at(1, Disk), drop_at(1, Memory)],
            Failed => vec![drop_at(1, Disk)],
        };
        assert_eq!(store.brought_back(1, result), dropped);
        assert!(store.0.is_empty());
    }
}

#[test]
fn an_object_that_cannot_be_read_back_is_told_and_kept() {
    let mut store = CheckedStore::filled_with(10, &[Primary]);
    store.reserve(2, 10);
    store.spilled(1, Done);
    store.filled(2);
    assert_eq!(store.wanted(1), [spill(2)]);
    assert_eq!(store.wanted(1), []);
    assert_eq!(store.spilled(2, Done), [drop_at(2, Memory), bring_back(1)]);
    let unreadable = refuse(1, READER, StoreRefusal::Unreadable);
    assert_eq!(store.brought_back(1, Failed), [unreadable.clone(), unreadable]);
    assert_eq!((store.bytes(), store.wanted(1)), ((0, 20), vec![bring_back(1)]));
}

#[test]
fn an_object_is_given_up_by_its_maker_alone() {
    let mut store = CheckedStore::filled_with(20, &[Primary]);
    assert_eq!(store.reserve(2, 10), [allocate(2, 10)]);
    assert_eq!(store.reserve(3, 20), [], "object 1 alone does not make enough room");
    let abandon = |number, by| move |it: &mut ObjectStore, out: &mut _| it.abandoned(object(number), by, out);
    assert_eq!(store.step(abandon(2, READER)), []);
    assert_eq!(store.step(abandon(9, MAKER)), [], "nobody knows it");
    assert_eq!(store.step(abandon(2, MAKER)), [drop_at(2, Memory), spill(1)]);
    assert_eq!(store.step(abandon(3, MAKER)), [], "it has no memory yet");
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory)]);
    assert_eq!(store.step(abandon(1, MAKER)), [drop_at(1, Disk)], "it was complete");
    assert!(store.0.is_empty());
}

#[test]
fn what_a_dead_maker_named_goes_unless_somebody_holds_it() {
    let mut store = CheckedStore::filled_with(40, &[Primary, Primary, Primary]);
    let other = ObjectId { maker: member(4), number: 1 };
    store.step(|it, out| it.reserve(other, 10, Primary, member(4), out));
    store.step(|it, out| it.filled(other, out));
    assert_eq!(store.wanted(3), [hand_over(3)]);
    let keep = [object(2), object(7)].into();
    let forgotten = store.step(|it, out| it.forget(member(1), &keep, out));
    assert_eq!(forgotten, [drop_at(1, Memory)], "a reader still maps object 3");
    assert_eq!(store.unmapped(3), [drop_at(3, Memory)]);
    let left: Vec<ObjectId> = store.0.figures().objects.iter().map(|it| it.object).collect();
    assert_eq!(left, [object(2), other]);
    let all = BTreeSet::new();
    assert_eq!(store.step(|it, out| it.forget(member(1), &all, out)), [drop_at(2, Memory)]);
}

#[test]
fn more_objects_than_the_limit_are_refused() {
    let mut store = CheckedStore(ObjectStore::new(20, 2));
    store.reserve(1, 1);
    store.reserve(2, 1);
    assert_eq!(store.reserve(3, 1), [refuse(3, MAKER, StoreRefusal::TooMany { limit: 2 })]);
    store.filled(1);
    store.free(1);
    assert_eq!(store.reserve(3, 1), [allocate(3, 1)]);
}

#[test]
fn figures_say_where_objects_are_and_who_maps_them() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    store.reserve(3, 10);
    store.spilled(1, Done);
    store.wanted(2);
    store.wanted(2);
    store.reserve(4, 20);
    let figures = store.0.figures();
    assert_eq!((figures.budget, figures.memory, figures.disk, figures.mapped_bytes()), (20, 20, 10, 10));
    let of = |number, bytes, place, mapped| {
        let object = object(number);
        ObjectFigures { object, bytes, kind: Primary, place, mapped }
    };
    assert_eq!(
        figures.objects,
        [
            of(1, 10, Some(Disk), vec![]),
            of(2, 10, Some(Memory), vec![(READER, 2)]),
            of(3, 10, Some(Memory), vec![]),
            of(4, 20, None, vec![]),
        ]
    );
}
