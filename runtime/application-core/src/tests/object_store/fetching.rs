//! Objects that come from other nodes, with their effects as whole lists.

use std::collections::BTreeSet;

use super::super::kit::member;
use super::scenarios::{
    CheckedStore, MAKER, READER, allocate, bring_back, drop_at, hand_over, object, refuse, spill,
};
use crate::ObjectKind::{Copy, Primary};
use crate::ObjectPlace::{Disk, Memory};
use crate::ObjectStoreEffect::{Ask, AwaitFetch, CopyDropped, Fetch, FetchSettled, Lose};
use crate::TransferResult::{Done, Failed};
use crate::{CallError, ObjectStore, ObjectStoreEffect, StoreRefusal, TransferResult};

fn await_fetch(number: u64) -> ObjectStoreEffect {
    AwaitFetch { object: object(number), to: READER }
}

fn ask(number: u64) -> ObjectStoreEffect {
    Ask { object: object(number) }
}

fn fetch(number: u64, bytes: u64) -> ObjectStoreEffect {
    Fetch { object: object(number), bytes }
}

/// It was fetched although nobody waits for it, as the coordinator hears.
fn not_needed(number: u64) -> [ObjectStoreEffect; 2] {
    let object = object(number);
    [FetchSettled { object }, CopyDropped { object }]
}

impl CheckedStore {
    fn fetch(&mut self, number: u64, bytes: u64) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.fetch(object(number), bytes, out))
    }

    fn fetched(&mut self, number: u64, result: TransferResult) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.fetched(object(number), result, out))
    }

    fn lost(&mut self, number: u64) -> Vec<ObjectStoreEffect> {
        self.step(|it, out| it.lost(object(number), &gone(), out))
    }

    /// A store whose only reader waits for a fetch of so many bytes that has begun.
    fn fetching(budget: u64, bytes: u64) -> CheckedStore {
        let mut store = CheckedStore::filled_with(budget, &[]);
        assert_eq!(store.wanted(1), [await_fetch(1), ask(1)]);
        assert_eq!(store.fetch(1, bytes), [fetch(1, bytes)]);
        store
    }
}

fn gone() -> CallError {
    CallError::ObjectLost("its node is gone".to_owned())
}

fn lose(number: u64) -> ObjectStoreEffect {
    Lose { object: object(number), to: READER, error: gone() }
}

#[test]
fn an_object_is_asked_for_once_and_fetched_for_all_who_want_it() {
    let mut store = CheckedStore::filled_with(20, &[]);
    assert_eq!(store.wanted(1), [await_fetch(1), ask(1)]);
    assert_eq!(store.wanted(1), [await_fetch(1)]);
    assert_eq!(store.0.figures().objects, [], "it is not here");
    assert_eq!(store.fetch(1, 20), [fetch(1, 20)]);
    assert_eq!(store.wanted(1), [await_fetch(1)]);
    assert_eq!((store.bytes(), store.0.has(object(1))), ((20, 0), false));
    assert_eq!(store.fetched(1, Done), [hand_over(1), hand_over(1), hand_over(1)]);
    let figures = store.0.figures();
    let copy = &figures.objects[0];
    assert_eq!((copy.kind, copy.bytes, copy.place), (Copy, 20, Some(Memory)));
    assert_eq!(store.wanted(1), [hand_over(1)]);
    (0..4).for_each(|_| assert_eq!(store.unmapped(1), []));
    assert_eq!(
        store.reserve(2, 10),
        [drop_at(1, Memory), CopyDropped { object: object(1) }, allocate(2, 10)]
    );
    assert_eq!(store.wanted(1), [await_fetch(1), ask(1)], "it may come again");
    assert_eq!(store.fetch(1, 10), [fetch(1, 10)]);
    assert_eq!(store.fetched(1, Done), [hand_over(1)]);
}

#[test]
fn a_fetch_waits_for_room_like_a_reservation() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    assert_eq!(store.wanted(3), [await_fetch(3), ask(3)]);
    assert_eq!(store.timed_out(3, READER), [], "another node has no deadline");
    assert_eq!(store.fetch(3, 10), [spill(1)]);
    assert_eq!(store.reserve(4, 10), []);
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), fetch(3, 10), spill(2)]);
    assert_eq!(store.timed_out(3, READER), [], "it has its room");
    assert_eq!(store.fetched(3, Done), [hand_over(3)]);
    assert_eq!(store.spilled(2, Done), [drop_at(2, Memory), allocate(4, 10)]);
    assert_eq!(store.bytes(), (20, 20));
}

#[test]
fn a_reader_for_whom_there_is_no_room_is_told_and_then_nothing_is_fetched() {
    let mut store = CheckedStore::filled_with(10, &[Primary]);
    assert_eq!(store.wanted(1), [hand_over(1)]);
    assert_eq!(store.wanted(2), [await_fetch(2), ask(2)]);
    let other = store.step(|it, out| it.wanted(object(2), MAKER, out));
    assert_eq!(other, [AwaitFetch { object: object(2), to: MAKER }]);
    assert_eq!(store.fetch(2, 10), [], "a reader maps the other one");
    assert_eq!(store.reserve(3, 10), []);
    assert_eq!(store.timed_out(2, MAKER), [refuse(2, MAKER, StoreRefusal::Full)]);
    let mut told = vec![refuse(2, READER, StoreRefusal::Full)];
    told.extend(not_needed(2));
    assert_eq!(store.timed_out(2, READER), told);
    assert_eq!(store.unmapped(1), [spill(1)], "for the reservation");
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), allocate(3, 10)]);
}

#[test]
fn a_fetch_that_fails_gives_its_memory_back_and_is_decided_anew() {
    let mut store = CheckedStore::fetching(20, 20);
    assert_eq!(store.reserve(2, 20), []);
    assert_eq!(store.fetched(1, Failed), [drop_at(1, Memory), allocate(2, 20)]);
    assert_eq!(store.wanted(1), [await_fetch(1)], "the coordinator answers without another question");
    assert_eq!(store.fetch(1, 20), []);
    assert_eq!(store.filled(2), [spill(2)]);
    assert_eq!(store.spilled(2, Done), [drop_at(2, Memory), fetch(1, 20)]);
    assert_eq!(store.fetched(1, Failed), [drop_at(1, Memory)]);
    assert_eq!(store.lost(1), [lose(1), lose(1)]);
    assert_eq!(store.bytes(), (0, 20));
    assert_eq!(store.wanted(1), [await_fetch(1), ask(1)], "what was lost may have been made again");
}

#[test]
fn a_fetch_without_memory_ends_and_is_told() {
    let mut store = CheckedStore::fetching(20, 20);
    let mut told = vec![refuse(1, READER, StoreRefusal::Full)];
    told.extend(not_needed(1));
    assert_eq!(store.step(|it, out| it.not_allocated(object(1), out)), told);
    assert!(store.0.is_empty());
}

#[test]
fn what_never_fits_is_not_fetched() {
    let mut store = CheckedStore::filled_with(20, &[]);
    store.wanted(1);
    let mut told = vec![refuse(1, READER, StoreRefusal::TooLarge { bytes: 21, budget: 20 })];
    told.extend(not_needed(1));
    assert_eq!(store.fetch(1, 21), told);
    assert!(store.0.is_empty());
}

#[test]
fn a_fetch_that_nobody_waits_for_is_not_begun() {
    let mut store = CheckedStore::filled_with(20, &[Primary]);
    assert_eq!(store.wanted(2), [await_fetch(2), ask(2)]);
    assert_eq!(store.step(|it, out| it.member_ended(READER, out)), []);
    assert_eq!(store.fetch(2, 10), not_needed(2));
    assert_eq!(store.fetch(3, 10), not_needed(3), "nobody ever wanted it");
    assert_eq!(store.fetch(1, 10), [FetchSettled { object: object(1) }], "it is here");
    // One that waits for room.
    assert_eq!(store.step(|it, out| it.wanted(object(1), MAKER, out)).len(), 1);
    assert_eq!(store.wanted(4), [await_fetch(4), ask(4)]);
    assert_eq!(store.fetch(4, 20), []);
    assert_eq!(store.step(|it, out| it.member_ended(READER, out)), not_needed(4));
    // One that has begun goes on, and may leave again.
    assert_eq!(store.wanted(5), [await_fetch(5), ask(5)]);
    assert_eq!(store.fetch(5, 10), [fetch(5, 10)]);
    assert_eq!(store.step(|it, out| it.member_ended(READER, out)), []);
    assert_eq!(store.fetched(5, Done), []);
    assert_eq!(store.bytes(), (20, 0));
    assert_eq!(store.wanted(5), [hand_over(5)]);
}

#[test]
fn what_is_freed_on_its_way_goes() {
    let freed = refuse(1, READER, StoreRefusal::Freed);
    let mut store = CheckedStore::filled_with(20, &[]);
    store.wanted(1);
    assert_eq!(store.free(1), std::slice::from_ref(&freed), "it was only asked for");
    assert_eq!(store.lost(1), [], "the words have crossed");
    assert_eq!(store.reserve(2, 20), [allocate(2, 20)]);
    store.wanted(1);
    assert_eq!(store.fetch(1, 10), []);
    assert_eq!(store.free(1), [std::slice::from_ref(&freed), &not_needed(1)].concat());
    assert_eq!(store.step(|it, out| it.abandoned(object(2), MAKER, out)), [drop_at(2, Memory)]);
    for result in [Done, Failed] {
        let mut store = CheckedStore::fetching(20, 10);
        assert_eq!(store.free(1), std::slice::from_ref(&freed));
        assert_eq!(store.wanted(1), [refuse(1, READER, StoreRefusal::Unknown)]);
        assert_eq!(store.fetched(1, result), [drop_at(1, Memory)]);
        assert!(store.0.is_empty());
    }
    let mut store = CheckedStore::fetching(20, 10);
    store.free(1);
    assert_eq!(store.step(|it, out| it.not_allocated(object(1), out)), not_needed(1));
}

#[test]
fn a_dead_makers_objects_go_also_if_they_are_asked_for() {
    let mut store = CheckedStore::filled_with(20, &[]);
    store.wanted(1);
    store.wanted(2);
    let keep = BTreeSet::from([object(2)]);
    let forgotten = store.step(|it, out| it.forget(member(1), &keep, out));
    assert_eq!(forgotten, [refuse(1, READER, StoreRefusal::Freed)]);
    assert_eq!(store.fetch(2, 10), [fetch(2, 10)]);
}

#[test]
fn readers_that_were_faster_than_the_maker_get_what_it_makes() {
    // The coordinator answers before, while and after the object is made.
    for answer_at in 0..3 {
        let mut store = CheckedStore::filled_with(20, &[]);
        let answer = |store: &mut CheckedStore, at, told: &[ObjectStoreEffect]| {
            if at == answer_at {
                assert_eq!(store.fetch(1, 10), told);
            }
        };
        assert_eq!(store.wanted(1), [await_fetch(1), ask(1)]);
        assert_eq!(store.reserve(1, 10), [allocate(1, 10)]);
        assert!(store.0.is_made_by(object(1), MAKER) && !store.0.is_made_by(object(1), READER));
        answer(&mut store, 0, &not_needed(1));
        assert_eq!(store.wanted(1), []);
        answer(&mut store, 1, &not_needed(1));
        assert_eq!(store.filled(1), [hand_over(1), hand_over(1)]);
        answer(&mut store, 2, &[FetchSettled { object: object(1) }]);
        assert_eq!(store.lost(1), [], "it is here");
        let figures = store.0.figures();
        assert_eq!((figures.objects.len(), figures.objects[0].kind), (1, Primary));
        assert!(store.0.has(object(1)));
    }
}

#[test]
fn readers_of_what_a_maker_gives_up_wait_for_other_nodes() {
    let mut store = CheckedStore::filled_with(20, &[]);
    store.wanted(1);
    store.reserve(1, 10);
    let abandoned = store.step(|it, out| it.abandoned(object(1), MAKER, out));
    assert_eq!(abandoned, [drop_at(1, Memory), await_fetch(1)], "the question has no answer yet");
    let again = store.step(|it, out| it.abandoned(object(1), MAKER, out));
    assert_eq!(again, [], "it is not its maker any more");
    store.reserve(1, 10);
    assert_eq!(store.lost(1), [], "it is being made");
    assert_eq!(store.step(|it, out| it.not_allocated(object(1), out)).len(), 3);
    assert_eq!(store.lost(1), [lose(1)]);
    // One that waits for room.
    assert_eq!(store.reserve(2, 20), [allocate(2, 20)]);
    store.wanted(3);
    assert_eq!(store.reserve(3, 10), []);
    let told = [refuse(3, MAKER, StoreRefusal::Full), await_fetch(3)];
    assert_eq!(store.timed_out(3, MAKER), told);
    assert_eq!(store.fetch(3, 10), []);
    assert_eq!(store.reserve(3, 10), [refuse(3, MAKER, StoreRefusal::Exists)]);
    assert_eq!(store.filled(2), [spill(2)]);
    assert_eq!(store.spilled(2, Done), [drop_at(2, Memory), fetch(3, 10)]);
    let too_large = StoreRefusal::TooLarge { bytes: 21, budget: 20 };
    store.wanted(4);
    assert_eq!(store.reserve(4, 21), [refuse(4, MAKER, too_large)]);
    assert_eq!(store.fetch(4, 10), [fetch(4, 10)]);
}

#[test]
fn what_is_lost_on_its_way_is_told_and_may_come_all_the_same() {
    let mut store = CheckedStore::filled_with(20, &[Primary]);
    assert_eq!(store.wanted(1), [hand_over(1)]);
    store.wanted(2);
    assert_eq!(store.fetch(2, 20), []);
    assert_eq!(store.lost(2), [&[lose(2)][..], &not_needed(2)].concat());
    store.wanted(3);
    assert_eq!(store.fetch(3, 10), [fetch(3, 10)]);
    assert_eq!(store.lost(3), [lose(3)]);
    assert_eq!(store.fetched(3, Done), []);
    assert_eq!(store.wanted(3), [hand_over(3)]);
    assert_eq!(store.lost(1), [], "it is here");
}

#[test]
fn what_other_nodes_fetch_was_used() {
    let mut store = CheckedStore::filled_with(20, &[Primary, Primary]);
    store.0.served(object(1));
    assert_eq!(store.reserve(3, 10), [spill(2)]);
    store.0.served(object(2));
    store.0.served(object(9));
    assert_eq!(store.spilled(2, Done), [drop_at(2, Memory), allocate(3, 10)]);
    store.0.served(object(2));
    assert_eq!(store.wanted(2), [spill(1)]);
    assert_eq!(store.spilled(1, Done), [drop_at(1, Memory), bring_back(2)]);
    assert_eq!(store.brought_back(2, Done), [drop_at(2, Disk), hand_over(2)]);
}

#[test]
fn more_wishes_than_the_limit_are_refused() {
    let mut store = CheckedStore(ObjectStore::new(20, 2));
    store.wanted(1);
    store.reserve(2, 1);
    assert_eq!(store.wanted(3), [refuse(3, READER, StoreRefusal::TooMany { limit: 2 })]);
    assert_eq!(store.wanted(1), [await_fetch(1)]);
    assert_eq!(store.reserve(1, 1), [allocate(1, 1)], "it is one of the two");
}
