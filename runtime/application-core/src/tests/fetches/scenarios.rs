//! Places, wishes and fetches.

use super::super::kit::member;
use crate::fetches::{Fetches, FreedPlaces, NextStore, StoreFrames, StoredAt};
use crate::{CallError, FetchFailure, NodeNumber, ObjectId, ToStore};

const BYTES: u64 = 100_000;

const fn node(number: u32) -> NodeNumber {
    NodeNumber(number)
}

const fn object(number: u64) -> ObjectId {
    ObjectId { maker: member(2), number }
}

fn told(change: impl FnOnce(&mut StoreFrames)) -> StoreFrames {
    let mut told = StoreFrames::new();
    change(&mut told);
    told
}

const fn fetch(to: u32, number: u64, from: u32) -> (NodeNumber, ToStore) {
    (node(to), ToStore::Fetch { object: object(number), bytes: BYTES, from: node(from) })
}

fn lost(to: u32, number: u64, text: &str) -> (NodeNumber, ToStore) {
    let error = CallError::ObjectLost(text.to_owned());
    (node(to), ToStore::Lost { object: object(number), error })
}

const fn free(to: u32, number: u64) -> (NodeNumber, ToStore) {
    (node(to), ToStore::Free { object: object(number) })
}

fn stored(it: &mut Fetches, number: u64, at: u32) -> StoreFrames {
    told(|all| it.stored(object(number), BYTES, StoredAt::Place(node(at)), all))
}

fn wants(it: &mut Fetches, number: u64, by: u32) -> StoreFrames {
    told(|all| it.wants(object(number), node(by), all))
}

fn fetched(it: &mut Fetches, number: u64, by: u32) -> StoreFrames {
    told(|all| it.fetched(object(number), node(by), Ok(()), all))
}

fn fails(it: &mut Fetches, number: u64, by: u32) -> StoreFrames {
    told(|all| it.fetched(object(number), node(by), Err("it broke".to_owned().into()), all))
}

fn freed(it: &mut Fetches, number: u64) -> StoreFrames {
    told(|all| assert_eq!(it.freed(object(number), all), FreedPlaces::Told))
}

/// Object 1 is on node 0.
fn one_place() -> Fetches {
    let mut it = Fetches::default();
    assert_eq!(stored(&mut it, 1, 0), []);
    it
}

#[test]
fn a_source_serves_two_at_a_time_and_each_copy_serves_others() {
    let mut it = one_place();
    assert_eq!(wants(&mut it, 1, 1), [fetch(1, 1, 0)]);
    assert_eq!(wants(&mut it, 1, 2), [fetch(2, 1, 0)]);
    for by in 3..=6 {
        assert_eq!(wants(&mut it, 1, by), [], "in order, behind the first two");
    }
    assert_eq!(
        fetched(&mut it, 1, 2),
        [fetch(3, 1, 2), fetch(4, 1, 2), fetch(5, 1, 0)],
        "the copy serves two, and the source one more"
    );
    assert_eq!(fetched(&mut it, 1, 1), [fetch(6, 1, 1)], "the one that serves least");
}

#[test]
fn the_last_copy_is_kept() {
    let mut it = one_place();
    wants(&mut it, 1, 1);
    wants(&mut it, 1, 2);
    fetched(&mut it, 1, 1);
    fetched(&mut it, 1, 2);
    let keep = |at| (node(at), ToStore::Keep { object: object(1) });
    let lose = |it: &mut Fetches, lost| told(|all| it.node_lost(node(lost), NextStore::None, all));
    assert_eq!(lose(&mut it, 0), [keep(1)], "one of them is");
    assert_eq!(told(|all| it.dropped(object(1), node(2), all)), []);
    assert_eq!(told(|all| it.dropped(object(1), node(1), all)), [], "it was on its way");
    assert_eq!(wants(&mut it, 1, 2), [fetch(2, 1, 1)]);
    let missing = told(|all| it.fetched(object(1), node(2), Err(FetchFailure::Missing), all));
    assert_eq!((missing, it.is_missed(object(1))), (vec![], true));
}

#[test]
fn the_place_that_serves_least_is_asked_then_the_lowest() {
    let mut it = one_place();
    stored(&mut it, 1, 2);
    stored(&mut it, 1, 1);
    assert_eq!(wants(&mut it, 1, 5), [fetch(5, 1, 0)]);
    assert_eq!(wants(&mut it, 1, 6), [fetch(6, 1, 1)]);
    assert_eq!(wants(&mut it, 1, 7), [fetch(7, 1, 2)]);
    assert_eq!(wants(&mut it, 1, 8), [fetch(8, 1, 0)]);
}

#[test]
fn what_waits_for_a_source_goes_in_order_whatever_the_object() {
    let mut it = one_place();
    stored(&mut it, 2, 0);
    wants(&mut it, 1, 1);
    wants(&mut it, 1, 2);
    assert_eq!((wants(&mut it, 2, 3), wants(&mut it, 1, 3)), (vec![], vec![]));
    assert_eq!(fails(&mut it, 1, 2), [fetch(3, 2, 0)], "who failed goes last");
    assert_eq!(fetched(&mut it, 2, 3), [fetch(3, 1, 0)]);
}

#[test]
fn a_wish_waits_for_an_object_that_is_not_known_or_gone() {
    let mut it = Fetches::default();
    assert_eq!(wants(&mut it, 1, 1), []);
    assert!(it.is_missed(object(1)) && !it.is_known(object(1)));
    assert_eq!(stored(&mut it, 1, 0), [fetch(1, 1, 0)]);
    assert!(!it.is_missed(object(1)));
    assert_eq!(told(|all| it.node_lost(node(0), NextStore::None, all)), []);
    assert_eq!(it.lost_with(object(1)), Some(node(0)));
    assert_eq!(fails(&mut it, 1, 1), []);
    assert!(it.is_missed(object(1)));
    let error = CallError::ObjectLost("gone".to_owned());
    assert_eq!(told(|all| it.lose(object(1), &error, all)), [lost(1, 1, "gone")]);
    assert!(!it.is_missed(object(1)));
}

#[test]
fn an_object_that_cannot_be_fetched_twenty_times_is_given_up_and_another_place_is_tried_first() {
    let mut it = one_place();
    stored(&mut it, 1, 1);
    assert_eq!(wants(&mut it, 1, 2), [fetch(2, 1, 0)]);
    for turn in 1..=19 {
        assert_eq!(fails(&mut it, 1, 2), [fetch(2, 1, turn % 2)]);
    }
    let text = "it could not be fetched, 20 times; the last time: it broke";
    assert_eq!(fails(&mut it, 1, 2), [lost(2, 1, text)]);
    assert_eq!(wants(&mut it, 1, 2), [fetch(2, 1, 0)], "another wish");
}

#[test]
fn a_freed_object_is_freed_where_it_is_or_comes_to_and_who_waits_is_told() {
    let mut it = one_place();
    stored(&mut it, 2, 0);
    for by in 1..=3 {
        wants(&mut it, 1, by);
    }
    assert_eq!(wants(&mut it, 2, 4), []);
    let nobody = lost(3, 1, "nobody holds it any more");
    assert_eq!(freed(&mut it, 1), [nobody, free(0, 1), free(1, 1), free(2, 1)]);
    assert_eq!(fetched(&mut it, 1, 1), [fetch(4, 2, 0)], "its slot is free when its store says so");
    freed(&mut it, 2);
    assert!(it.is_empty());
}

#[test]
fn a_wish_ends_with_its_store_and_a_process_of_its_node_may_store_the_object() {
    let mut it = one_place();
    for by in 1..=4 {
        wants(&mut it, 1, by);
    }
    assert_eq!(told(|all| it.node_lost(node(1), NextStore::None, all)), [fetch(3, 1, 0)]);
    assert_eq!(stored(&mut it, 1, 2), [fetch(4, 1, 2)]);
    wants(&mut it, 2, 5);
    stored(&mut it, 2, 0);
    assert_eq!(fetched(&mut it, 1, 2), [fetch(5, 2, 0)], "the fetch was not needed");
    assert_eq!(wants(&mut it, 3, 6), []);
    assert_eq!(stored(&mut it, 3, 6), [fetch(6, 3, 6)], "it is asked whether it has it");
    assert_eq!(fetched(&mut it, 3, 6), []);
    let made_twice = told(|all| assert_eq!(it.freed(object(1), all), FreedPlaces::Unknown));
    assert_eq!(made_twice, [], "parts of it may be anywhere");
}

#[test]
fn a_store_that_wants_what_it_is_believed_to_have_is_asked_first() {
    let mut it = one_place();
    stored(&mut it, 1, 1);
    assert_eq!(wants(&mut it, 1, 1), [fetch(1, 1, 1)]);
    assert_eq!(fetched(&mut it, 1, 1), [], "it has it");
    assert_eq!(wants(&mut it, 1, 1), [fetch(1, 1, 1)]);
    assert_eq!(fails(&mut it, 1, 1), [fetch(1, 1, 0)], "it has it not");
    assert_eq!(it.places()[&object(1)], [node(0)]);
}

#[test]
fn a_copy_that_was_dropped_serves_nobody() {
    let mut it = one_place();
    wants(&mut it, 1, 1);
    fetched(&mut it, 1, 1);
    told(|all| it.dropped(object(1), node(1), all));
    told(|all| it.dropped(object(1), node(0), all));
    wants(&mut it, 1, 2);
    wants(&mut it, 1, 3);
    assert_eq!(wants(&mut it, 1, 4), []);
    assert_eq!(it.places()[&object(1)], [node(0)], "what was stored there is no copy");
}

#[test]
fn a_place_that_turns_out_to_be_none_is_not_asked_again() {
    let mut it = one_place();
    stored(&mut it, 1, 1);
    assert_eq!(wants(&mut it, 1, 2), [fetch(2, 1, 0)]);
    let missing = told(|all| it.fetched(object(1), node(2), Err(FetchFailure::Missing), all));
    assert_eq!(missing, [fetch(2, 1, 1)]);
    let missing = told(|all| it.fetched(object(1), node(2), Err(FetchFailure::Missing), all));
    assert_eq!((missing, it.is_missed(object(1))), (vec![], true));
    assert_eq!(it.lost_with(object(1)), Some(node(1)));
}

#[test]
fn a_wish_waits_for_the_next_store_of_a_node_which_may_have_the_object() {
    let mut it = Fetches::default();
    told(|all| it.stored(object(1), BYTES, StoredAt::Expected(node(1)), all));
    stored(&mut it, 2, 1);
    told(|all| it.node_lost(node(1), NextStore::Follows, all));
    stored(&mut it, 3, 0);
    told(|all| it.stored(object(3), BYTES, StoredAt::Expected(node(1)), all));
    assert_eq!((wants(&mut it, 1, 2), wants(&mut it, 2, 2)), (vec![], vec![]));
    assert_eq!(it.missed(), []);
    told(|all| assert_eq!(it.freed(object(3), all), FreedPlaces::Unknown));
    let listens = told(|all| it.node_listens(node(1), all));
    assert_eq!(listens, [fetch(2, 1, 1), fetch(2, 2, 1), free(1, 3)]);
}

#[test]
fn what_a_node_lacked_before_it_fetched_it_says_nothing() {
    let mut it = one_place();
    assert_eq!(wants(&mut it, 1, 2), [fetch(2, 1, 0)]);
    told(|all| it.node_lost(node(0), NextStore::None, all));
    assert_eq!(stored(&mut it, 1, 1), [], "the first wish is still being served");
    assert_eq!(wants(&mut it, 1, 0), [fetch(0, 1, 1)]);
    assert_eq!(fetched(&mut it, 1, 0), []);
    let missing = told(|all| it.fetched(object(1), node(2), Err(FetchFailure::Missing), all));
    assert_eq!(missing, [fetch(2, 1, 1)]);
    assert_eq!(it.places()[&object(1)], [node(0), node(1)], "it is still known that node 0 has it");
}
