//! What the coordinator remembers of tasks, and whom it asks to run them again.

use bytes::Bytes;
use cohabit_types::RankId;

use super::super::kit::{MAIN, ROOT, address, class, effects, member, root_node};
use crate::{
    CallError, Carried, CarriedValue, Coordinator, CoordinatorEffect, FromCoordinator, FromDirectory,
    FromStore, HeldId, Lineage, NodeNumber, ObjectId, RunnerReport, RunnerState, StoredObject, ToCoordinator,
    ToDirectory, ToStore,
};

/// A process on node n1.
const FAR: RankId = member(3);
/// Another main on node n0.
const OTHER: RankId = member(9);
const STORE: RankId = member(20);
const N1: NodeNumber = NodeNumber(1);

const fn object(number: u64) -> ObjectId {
    ObjectId { maker: FAR, number }
}

const fn stored(object: ObjectId) -> StoredObject {
    StoredObject { object, bytes: 100_000, home: N1, has_handles: false }
}

fn tells(it: &mut Coordinator, from: RankId, report: ToDirectory) -> Vec<CoordinatorEffect> {
    effects(|all| it.received(from, ToCoordinator::Object(report), all))
}

fn lends(it: &mut Coordinator, object: ObjectId, to: RankId) {
    let frame = ToCoordinator::Lend { held: HeldId::Object(object), to };
    assert_eq!(effects(|all| it.received(FAR, frame, all)), []);
}

fn releases(it: &mut Coordinator, from: RankId, of: ObjectId, lender: RankId) -> Vec<CoordinatorEffect> {
    let frame = ToCoordinator::Release { held: HeldId::Object(of), settled: vec![(lender, 1)] };
    effects(|all| it.received(from, frame, all))
}

/// A task of function 3 that needs this object.
fn lineage(needs: &[ObjectId], retries: u32) -> Lineage {
    let value = |object: &ObjectId| CarriedValue::Stored(stored(*object));
    let carry = |object: &ObjectId| Carried::Object { object: *object, value: value(object) };
    Lineage {
        class: class(),
        function: 3,
        arguments: Bytes::from_static(b"arguments"),
        needs: needs.to_vec(),
        carries: needs.iter().map(carry).collect(),
        retries,
    }
}

/// Two mains on n0, and a process on n1 with a store.
fn application() -> Coordinator {
    let mut it = Coordinator::new(ROOT, root_node(), None, None);
    effects(|all| {
        for main in [MAIN, OTHER] {
            it.main(main.job(), all);
            it.connected(main, "n0", all);
        }
        it.main(FAR.job(), all);
        it.connected(FAR, "n1", all);
        it.store_submitted(N1, Ok(STORE.job()), all);
        it.connected(STORE, "n1", all);
        it.received(STORE, ToCoordinator::Store(FromStore::Listens { at: address(1) }), all);
    });
    it
}

/// The process of n1 has stored an object and holds it no longer; these do. It was made by a task of the
/// main.
fn make(it: &mut Coordinator, object: ObjectId, holders: &[RankId], lineage: Lineage) {
    tells(it, FAR, ToDirectory::Stored { stored: stored(object), carries: vec![] });
    holders.iter().for_each(|to| lends(it, object, *to));
    tells(it, MAIN, ToDirectory::Made { object, lineage: Box::new(lineage) });
    releases(it, FAR, object, ROOT);
}

fn lose_node(it: &mut Coordinator) {
    effects(|all| it.member_silent(STORE, all));
    for main in [MAIN, OTHER] {
        assert_eq!(closes(it, main, STORE), []);
    }
}

/// A process says what it got from one that has ended: nothing.
fn closes(it: &mut Coordinator, from: RankId, ended: RankId) -> Vec<CoordinatorEffect> {
    let closed = ToCoordinator::Closed { member: ended, settled: vec![] };
    effects(|all| it.received(from, closed, all))
}

/// The store of node n0 wants it.
fn wanted(it: &mut Coordinator, object: ObjectId) -> Vec<CoordinatorEffect> {
    effects(|all| it.received_from_own_store(FromStore::Wants { object }, all))
}

fn remakes(to: RankId, object: ObjectId, remake: u32, lineage: Lineage) -> CoordinatorEffect {
    let lineage = Box::new(lineage);
    let news = FromDirectory::Remake { object, remake, lineage };
    CoordinatorEffect::Send { to, frame: FromCoordinator::Object(news) }
}

fn lost(object: ObjectId, text: &str) -> CoordinatorEffect {
    CoordinatorEffect::OwnStore(ToStore::Lost { object, error: CallError::ObjectLost(text.to_owned()) })
}

/// The store has ended, and so has its node before the next one listens.
#[test]
fn an_object_whose_next_store_does_not_come_is_made_again() {
    let mut it = application();
    make(&mut it, object(1), &[MAIN], lineage(&[], 2));
    let waiting = RunnerReport {
        ended_attempts: 1,
        state: RunnerState::Waiting { why: "it is tried again".to_owned(), shortage: None },
    };
    let told = effects(|all| it.report(STORE.job(), waiting, all));
    let awaited = CoordinatorEffect::AwaitStore { node: N1, restarts: 1 };
    assert!(told.contains(&awaited), "{told:?}");
    for main in [MAIN, OTHER] {
        closes(&mut it, main, STORE);
    }
    assert_eq!(wanted(&mut it, object(1)), [], "the next store may have it");
    assert_eq!(effects(|all| it.store_overdue(N1, 0, all)), [], "that is another one");
    let remade = [remakes(MAIN, object(1), 1, lineage(&[], 1))];
    assert_eq!(effects(|all| it.store_overdue(N1, 1, all)), remade);
}

#[test]
fn a_lost_object_is_made_again_as_often_as_its_task_may_run() {
    let mut it = application();
    make(&mut it, object(1), &[MAIN], lineage(&[], 2));
    lose_node(&mut it);
    assert_eq!(wanted(&mut it, object(1)), [remakes(MAIN, object(1), 1, lineage(&[], 1))]);
    let failed = |remake| {
        let error = CallError::Failed("no such file".to_owned());
        ToDirectory::NotRemade { object: object(1), remake, error }
    };
    assert_eq!(tells(&mut it, OTHER, failed(1)), [], "it was not asked");
    let text = "node n1, which had it, was lost, and its task has failed when it was run again: no such file";
    assert_eq!(tells(&mut it, MAIN, failed(1)), [lost(object(1), text)]);
    assert_eq!(wanted(&mut it, object(1)), [remakes(MAIN, object(1), 2, lineage(&[], 0))]);
    assert_eq!(tells(&mut it, MAIN, failed(1)), [], "that was the first one");
    tells(&mut it, MAIN, failed(2));
    let text = "node n1, which had it, was lost, and its task has run as often as its retries allow: allow it \
                more retries";
    assert_eq!(wanted(&mut it, object(1)), [lost(object(1), text)]);
}

#[test]
fn what_was_put_is_lost() {
    let mut it = application();
    tells(&mut it, FAR, ToDirectory::Stored { stored: stored(object(1)), carries: vec![] });
    lose_node(&mut it);
    assert_eq!(wanted(&mut it, object(1)), [lost(object(1), GONE)]);
}

#[test]
fn the_next_holder_makes_it_when_the_first_one_has_ended() {
    let mut it = application();
    make(&mut it, object(1), &[MAIN, OTHER], lineage(&[], 1));
    lose_node(&mut it);
    assert_eq!(wanted(&mut it, object(1)), [remakes(MAIN, object(1), 1, lineage(&[], 0))]);
    let state = RunnerState::Ended { code: 1, text: String::new() };
    let report = RunnerReport { ended_attempts: 1, state };
    let told = effects(|all| it.report(MAIN.job(), report, all));
    assert_eq!(told.last(), Some(&remakes(OTHER, object(1), 2, lineage(&[], 0))), "that is no retry");
    let stored = ToDirectory::Stored { stored: stored(object(1)), carries: vec![] };
    let fetch = ToStore::Fetch { object: object(1), bytes: 100_000, from: NodeNumber::COORDINATOR };
    let asked = CoordinatorEffect::OwnStore(fetch);
    assert_eq!(tells(&mut it, OTHER, stored), [asked], "the store has it now, and says so");
    assert_eq!(it.describe().object_places[&object(1)], [NodeNumber::COORDINATOR]);
}

#[test]
fn arguments_are_made_again_as_well() {
    let mut it = application();
    make(&mut it, object(1), &[MAIN], lineage(&[], 1));
    make(&mut it, object(2), &[MAIN], lineage(&[object(1)], 1));
    assert_eq!(releases(&mut it, MAIN, object(1), FAR), [], "the second one may need it");
    lose_node(&mut it);
    assert_eq!(wanted(&mut it, object(2)), [remakes(MAIN, object(2), 1, lineage(&[object(1)], 0))]);
    assert_eq!(wanted(&mut it, object(1)), [remakes(MAIN, object(1), 1, lineage(&[], 0))], "by the runner");
}

#[test]
fn a_runner_that_ends_before_it_tells_of_what_it_has_made_costs_another_retry() {
    let mut it = application();
    make(&mut it, object(1), &[MAIN], lineage(&[], 2));
    lose_node(&mut it);
    wanted(&mut it, object(1));
    let remade = |runner| ToDirectory::Remade { object: object(1), remake: 1, runner };
    assert_eq!(tells(&mut it, MAIN, remade(OTHER)), [], "it will say that it has stored it");
    let state = RunnerState::Ended { code: 1, text: String::new() };
    let report = RunnerReport { ended_attempts: 1, state };
    let told = effects(|all| it.report(OTHER.job(), report, all));
    assert_eq!(told.last(), Some(&remakes(MAIN, object(1), 2, lineage(&[], 0))));
}

#[test]
fn a_freed_object_is_forgotten_with_what_its_task_holds() {
    let mut it = application();
    make(&mut it, object(1), &[MAIN], lineage(&[], 1));
    make(&mut it, object(2), &[MAIN], lineage(&[object(1)], 1));
    releases(&mut it, MAIN, object(1), FAR);
    assert!(!it.is_idle());
    let free = |number| {
        let frame = FromCoordinator::Store(ToStore::Free { object: object(number) });
        CoordinatorEffect::Send { to: STORE, frame }
    };
    assert_eq!(releases(&mut it, MAIN, object(2), FAR), [free(2), free(1)]);
    assert!(it.is_idle());
}

#[test]
fn what_was_made_again_is_freed_everywhere_and_has_the_handles_of_the_last_value() {
    let mut it = application();
    let lent = |number| Carried::Object {
        object: object(number),
        value: CarriedValue::Stored(stored(object(number))),
    };
    for inner in [5, 6] {
        tells(&mut it, FAR, ToDirectory::Stored { stored: stored(object(inner)), carries: vec![] });
    }
    let with = |number| {
        let stored = StoredObject { has_handles: true, ..stored(object(1)) };
        ToDirectory::Stored { stored, carries: vec![lent(number)] }
    };
    tells(&mut it, FAR, with(5));
    releases(&mut it, FAR, object(5), ROOT);
    let own = |number| CoordinatorEffect::OwnStore(ToStore::Free { object: object(number) });
    let far = |number| {
        let frame = FromCoordinator::Store(ToStore::Free { object: object(number) });
        CoordinatorEffect::Send { to: STORE, frame }
    };
    assert_eq!(tells(&mut it, FAR, with(6)), [far(5)]);
    releases(&mut it, FAR, object(6), ROOT);
    let release = ToCoordinator::Release { held: HeldId::Object(object(1)), settled: vec![(ROOT, 2)] };
    assert_eq!(effects(|all| it.received(FAR, release, all)), [own(1), far(1), far(6)]);
    assert!(it.is_idle());
}

#[test]
fn the_oldest_lineages_are_forgotten_when_they_have_too_many_bytes() {
    let mut it = application();
    let large = || Lineage { arguments: vec![0; 16 << 20].into(), ..lineage(&[], 1) };
    make(&mut it, object(1), &[MAIN], lineage(&[], 1));
    make(&mut it, object(2), &[MAIN], lineage(&[object(1)], 1));
    releases(&mut it, MAIN, object(1), FAR);
    (3..18).for_each(|number| make(&mut it, object(number), &[MAIN], large()));
    assert_eq!(it.lineages.of_ended(&[].into()).count(), 17);
    let made = ToDirectory::Made { object: object(18), lineage: Box::new(large()) };
    tells(&mut it, FAR, ToDirectory::Stored { stored: stored(object(18)), carries: vec![] });
    let frame = FromCoordinator::Store(ToStore::Free { object: object(1) });
    assert_eq!(
        tells(&mut it, MAIN, made),
        [CoordinatorEffect::Send { to: STORE, frame }],
        "nothing needs it"
    );
    assert_eq!(
        it.lineages.of_ended(&[].into()).next(),
        Some(object(4)),
        "each takes more than its arguments"
    );
}

#[test]
fn a_lineage_that_nobody_can_use_is_forgotten_when_all_is_known() {
    let mut it = application();
    tells(&mut it, MAIN, ToDirectory::Made { object: object(1), lineage: Box::new(lineage(&[], 1)) });
    for process in [FAR, MAIN] {
        let state = RunnerState::Ended { code: 0, text: String::new() };
        let report = RunnerReport { ended_attempts: 1, state };
        effects(|all| it.report(process.job(), report, all));
        for other in [MAIN, OTHER, STORE] {
            let closed = ToCoordinator::Closed { member: process, settled: vec![] };
            effects(|all| it.received(other, closed, all));
        }
    }
    assert!(it.is_idle());
}

const GONE: &str = "node n1, which had it, was lost, and nothing is known of how to make it again: it was put, or \
                    made by an actor or a stream, or its task has no retries. Put or make it again";

#[test]
fn who_holds_a_lost_object_is_asked_whether_it_called_its_task() {
    let mut it = application();
    tells(&mut it, FAR, ToDirectory::Stored { stored: stored(object(1)), carries: vec![] });
    lends(&mut it, object(1), MAIN);
    lose_node(&mut it);
    let inquire = FromCoordinator::Object(FromDirectory::Inquire { object: object(1) });
    let asked = [CoordinatorEffect::Send { to: MAIN, frame: inquire }];
    assert_eq!(wanted(&mut it, object(1)), asked);
    let said = || ToDirectory::Said { object: object(1) };
    assert_eq!(tells(&mut it, OTHER, said()), [], "it was not asked");
    assert_eq!(tells(&mut it, MAIN, said()), [lost(object(1), GONE)]);
    assert_eq!(wanted(&mut it, object(1)), asked);
    let made = ToDirectory::Made { object: object(1), lineage: Box::new(lineage(&[], 1)) };
    assert_eq!(
        tells(&mut it, MAIN, made),
        [remakes(MAIN, object(1), 1, lineage(&[], 0))],
        "it was on its way"
    );
}

#[test]
fn nothing_is_given_up_before_all_have_said_what_they_got_from_who_has_ended() {
    let mut it = application();
    tells(&mut it, FAR, ToDirectory::Stored { stored: stored(object(1)), carries: vec![] });
    effects(|all| it.member_silent(STORE, all));
    assert_eq!(wanted(&mut it, object(1)), [], "the mains may hold it");
    assert_eq!(closes(&mut it, MAIN, STORE), []);
    assert_eq!(closes(&mut it, OTHER, STORE), [lost(object(1), GONE)]);
}

/// Its first maker was killed before it told to whom it lent it.
#[test]
fn an_object_that_was_made_again_stays_until_all_have_said_what_its_first_maker_lent() {
    for main_has_it in [true, false] {
        let mut it = application();
        let ended = RunnerState::Ended { code: 137, text: "it was killed".to_owned() };
        effects(|all| it.report(FAR.job(), RunnerReport { ended_attempts: 1, state: ended }, all));
        let made = StoredObject { home: NodeNumber::COORDINATOR, ..stored(object(1)) };
        tells(&mut it, OTHER, ToDirectory::Stored { stored: made, carries: vec![] });
        assert_eq!(releases(&mut it, OTHER, object(1), ROOT), [], "the main may have it");
        let free = CoordinatorEffect::OwnStore(ToStore::Free { object: object(1) });
        let settled = if main_has_it { vec![(HeldId::Object(object(1)), 1)] } else { vec![] };
        let closed = ToCoordinator::Closed { member: FAR, settled };
        assert_eq!(effects(|all| it.received(MAIN, closed, all)), []);
        assert_eq!(closes(&mut it, OTHER, FAR), []);
        let last = closes(&mut it, STORE, FAR);
        assert_eq!(last.contains(&free), !main_has_it, "{last:?}");
        if main_has_it {
            assert_eq!(releases(&mut it, MAIN, object(1), ROOT), [free]);
        }
    }
}
