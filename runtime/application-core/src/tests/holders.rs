//! Counters of handles: signed, by lender, and settled after a member has ended.

use std::collections::BTreeSet;

use super::kit::{MAIN, ROOT, handle, member};
use crate::holders::{Holders, Unheld};
use crate::local_holds::LocalHolds;

const A: u64 = 1;

fn unheld(actors: &[u64]) -> Unheld {
    Unheld(actors.iter().map(|it| handle(*it)).collect())
}

/// Main holds the actor.
fn held() -> Holders {
    let mut holders = Holders::default();
    assert_eq!(holders.lend(handle(A), ROOT, MAIN), unheld(&[]));
    holders
}

#[test]
fn an_actor_is_held_until_the_last_release() {
    let mut holders = held();
    holders.lend(handle(A), MAIN, member(3));
    assert_eq!(holders.release(handle(A), MAIN, &[(ROOT, 1)]), unheld(&[]));
    assert_eq!(holders.release(handle(A), member(3), &[(MAIN, 1)]), unheld(&[A]));
    assert_eq!(holders.len(), 0);
}

#[test]
fn a_release_may_overtake_its_lend() {
    let mut holders = held();
    assert_eq!(holders.release(handle(A), member(3), &[(MAIN, 2)]), unheld(&[]));
    assert_eq!(holders.lend(handle(A), MAIN, member(3)), unheld(&[]));
    assert_eq!(holders.release(handle(A), MAIN, &[(ROOT, 1)]), unheld(&[]), "one lend is under way");
    assert_eq!(holders.lend(handle(A), MAIN, member(3)), unheld(&[A]));
}

#[test]
fn what_a_dead_member_held_stays_until_all_others_have_said_what_they_got_from_it() {
    let mut holders = held();
    let others = BTreeSet::from([member(3), member(4)]);
    assert_eq!(holders.member_ended(MAIN, &others), unheld(&[]));
    assert_eq!(holders.close(MAIN, member(3), &[], ROOT), unheld(&[]));
    assert!(holders.awaits(MAIN));
    assert_eq!(holders.close(MAIN, member(4), &[], ROOT), unheld(&[A]));
    assert!(!holders.awaits(MAIN));
}

#[test]
fn a_lend_that_died_with_its_lender_is_made_good_by_who_got_the_handle() {
    let mut holders = held();
    holders.member_ended(MAIN, &BTreeSet::from([member(3)]));
    assert_eq!(holders.close(MAIN, member(3), &[(handle(A), 1)], ROOT), unheld(&[]));
    assert_eq!(holders.release(handle(A), member(3), &[(ROOT, 1)]), unheld(&[A]));
}

#[test]
fn a_handle_that_died_with_its_lender_is_not_waited_for() {
    let mut holders = held();
    holders.lend(handle(A), MAIN, member(3));
    holders.member_ended(MAIN, &BTreeSet::from([member(3)]));
    assert_eq!(holders.close(MAIN, member(3), &[], ROOT), unheld(&[A]));
}

#[test]
fn a_second_death_ends_the_wait_for_the_second_member() {
    let mut holders = held();
    holders.member_ended(MAIN, &BTreeSet::from([member(3)]));
    assert_eq!(holders.member_ended(member(3), &BTreeSet::new()), unheld(&[A]));
}

#[test]
fn a_process_releases_once_for_all_its_handles() {
    let mut holds = LocalHolds::new();
    assert!(!holds.add(handle(A)), "it was never lent");
    holds.settle(handle(A), ROOT);
    holds.settle(handle(A), MAIN);
    assert!(holds.add(handle(A)));
    assert_eq!([holds.remove(handle(A)), holds.remove(handle(A))], [None, None]);
    assert_eq!(holds.transfer(MAIN, ROOT), [(handle(A), 1)]);
    assert_eq!(holds.remove(handle(A)), Some(vec![(ROOT, 2)]));
    assert!(!holds.is_held(handle(A)));
}
