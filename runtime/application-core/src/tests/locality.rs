//! Where processes are, and which runner gets a task that needs stored objects.

use cohabit_types::{RankId, Span};

use super::kit::{MAIN, ROOT, address, class, effects, inline, member, task};
use crate::{
    CallNumber, CallValue, Carried, CarriedValue, FromCoordinator, FromDirectory, FromStore, HeldId, Member,
    MemberEffect, MemberPlace, NodeNumber, ObjectId, RequestNumber, StoredObject, TaskSpec, ToCallee,
    ToCaller, ToCoordinator, ToStore,
};

const NEAR: RankId = member(3);
const FAR: RankId = member(4);
const N1: NodeNumber = NodeNumber(1);

fn hears(main: &mut Member, frame: FromCoordinator) -> Vec<MemberEffect> {
    effects(|all| main.receive(frame, all))
}

#[test]
fn a_process_reaches_those_of_its_node_there_and_others_by_their_nodes() {
    let mut it = Member::new(MAIN, ROOT);
    assert_eq!((it.node(), it.place_of(ROOT)), (NodeNumber::COORDINATOR, MemberPlace::Here));
    hears(&mut it, FromCoordinator::Welcome { node: N1 });
    assert_eq!((it.node(), it.place_of(ROOT)), (N1, MemberPlace::Unknown));
    hears(&mut it, FromCoordinator::NodeAt { node: NodeNumber::COORDINATOR, at: address(0) });
    assert_eq!(it.place_of(ROOT), MemberPlace::At(address(0)));
    assert_eq!(it.place_of(FAR), MemberPlace::Here, "nothing else was said");
    hears(&mut it, FromCoordinator::MemberAt { member: FAR, node: NodeNumber(2) });
    assert_eq!((it.place_of(FAR), it.address_of(NodeNumber(2))), (MemberPlace::Unknown, None));
    hears(&mut it, FromCoordinator::NodeAt { node: NodeNumber(2), at: address(2) });
    assert_eq!(it.place_of(FAR), MemberPlace::At(address(2)));
    hears(&mut it, FromCoordinator::NodeAt { node: NodeNumber(2), at: address(7) });
    assert_eq!(it.address_of(NodeNumber(2)), Some(&address(7)), "its store was started again");
    hears(&mut it, FromCoordinator::MemberAt { member: FAR, node: N1 });
    assert_eq!(it.place_of(FAR), MemberPlace::Here);
}

#[test]
fn the_process_of_a_store_passes_its_frames_on() {
    let mut it = Member::new(MAIN, ROOT);
    let frame = ToStore::Free { object: object(1) };
    assert_eq!(hears(&mut it, FromCoordinator::Store(frame.clone())), [MemberEffect::Store(frame)]);
    let frame = FromStore::Wants { object: object(1) };
    let passed = effects(|all| it.from_store(frame.clone(), all));
    assert_eq!(passed, [MemberEffect::ToCoordinator(ToCoordinator::Store(frame))]);
}

const fn object(number: u64) -> ObjectId {
    ObjectId { maker: FAR, number }
}

/// A main with a runner here and one on node n1, neither of which has tasks. Tasks take so long.
fn main(took: Span) -> Member {
    let mut main = Member::new(MAIN, ROOT);
    hears(&mut main, FromCoordinator::NodeAt { node: N1, at: address(1) });
    hears(&mut main, FromCoordinator::MemberAt { member: FAR, node: N1 });
    for runner in [FAR, NEAR] {
        hears(&mut main, FromCoordinator::RunnerJoined { class: class(), runner });
    }
    if took > Span::ZERO {
        assert_eq!(run(&mut main, &[]), [NEAR]);
        ends(&mut main, NEAR, 1, inline("done"), vec![], took);
    }
    main
}

fn ends(main: &mut Member, at: RankId, call: u64, value: CallValue, carries: Vec<Carried>, took: Span) {
    let frame = ToCaller::Ran { call: CallNumber(call), result: Ok(value), carries, took };
    effects(|all| main.receive_from_callee(at, frame, all));
}

/// The main gets a stored object of this home.
fn gets(main: &mut Member, number: u64, home: u32, bytes: u64) {
    let stored = StoredObject { object: object(number), bytes, home: NodeNumber(home), has_handles: false };
    let carries = vec![Carried::Object { object: object(number), value: CarriedValue::Stored(stored) }];
    let opened = FromDirectory::Opened { request: RequestNumber(1), carries };
    hears(main, FromCoordinator::Object(opened));
}

/// Which runners get a task that needs these.
fn run(main: &mut Member, needs: &[u64]) -> Vec<RankId> {
    let needs: Vec<ObjectId> = needs.iter().map(|number| object(*number)).collect();
    let carries = needs.iter().map(|it| HeldId::Object(*it)).collect();
    let spec = TaskSpec { needs, carries, ..task() };
    let sent = effects(|all| _ = main.run_task(spec, all).unwrap());
    let to = |effect| {
        let MemberEffect::ToCallee { to, frame: ToCallee::Run { .. } } = effect else { return None };
        Some(to)
    };
    sent.into_iter().filter_map(to).collect()
}

#[test]
fn a_task_goes_where_it_starts_earliest() {
    let mut main = main(Span::from_millis(50));
    gets(&mut main, 1, 1, 100_000_000);
    gets(&mut main, 2, 0, 30_000_000);
    assert_eq!(run(&mut main, &[1]), [FAR], "what it needs comes in 100 ms");
    assert_eq!(run(&mut main, &[1]), [FAR], "that is 50 ms behind another");
    assert_eq!(run(&mut main, &[1]), [NEAR], "100 ms at either, and the last that joined is first");
    assert_eq!(run(&mut main, &[1, 2]), [FAR], "100 + 30 or 50 + 100 ms");
}

#[test]
fn a_task_without_needs_goes_to_who_has_least_to_do() {
    let mut main = main(Span::from_millis(50));
    gets(&mut main, 1, 1, 100_000_000);
    assert_eq!(run(&mut main, &[1]), [FAR]);
    assert_eq!(run(&mut main, &[]), [NEAR]);
}

#[test]
fn it_waits_behind_tasks_near_what_it_needs_if_the_rest_comes_later() {
    let mut main = main(Span::from_millis(5));
    gets(&mut main, 1, 1, 1_000_000_000);
    let sent: Vec<_> = (0..10).flat_map(|_| run(&mut main, &[1])).collect();
    assert_eq!(sent, [FAR; 10], "more than it gets ahead else");
}

#[test]
fn as_long_as_nobody_knows_how_long_tasks_take_windows_count() {
    let mut main = main(Span::ZERO);
    gets(&mut main, 1, 1, 1_000_000_000);
    let sent: Vec<_> = (0..5).flat_map(|_| run(&mut main, &[1])).collect();
    assert_eq!(sent, [FAR, FAR, NEAR, NEAR]);
}

/// The tasks that runners are asked to return when another one that needs object 1 is called.
fn recalled(main: &mut Member) -> Vec<MemberEffect> {
    let (needs, carries) = (vec![object(1)], vec![HeldId::Object(object(1))]);
    let spec = TaskSpec { needs, carries, ..task() };
    let mut sent = effects(|all| _ = main.run_task(spec, all).unwrap());
    sent.retain(|it| matches!(it, MemberEffect::ToCallee { frame: ToCallee::Recall { .. }, .. }));
    sent
}

#[test]
fn a_runner_with_nothing_to_do_gets_a_task_that_waits_elsewhere_for_nobody_knows_how_long() {
    let mut main = main(Span::ZERO);
    gets(&mut main, 1, 1, 1_000_000_000);
    let recall = MemberEffect::ToCallee { to: FAR, frame: ToCallee::Recall { call: CallNumber(1) } };
    assert_eq!(recalled(&mut main), [recall]);
    let returned = ToCaller::Returned { call: CallNumber(1) };
    let moved = effects(|all| main.receive_from_callee(FAR, returned, all));
    let to_near = |effect: &MemberEffect| {
        matches!(effect, MemberEffect::ToCallee { to: NEAR, frame: ToCallee::Run { .. } })
    };
    assert!(moved.iter().any(to_near), "{moved:?}");
}

#[test]
fn a_task_stays_that_starts_before_what_it_needs_could_be_brought_elsewhere() {
    let mut main = main(Span::from_millis(5));
    gets(&mut main, 1, 1, 1_000_000_000);
    (0..4).for_each(|_| assert_eq!(recalled(&mut main), []));
}

#[test]
fn nodes_are_forgotten_with_their_runners() {
    let mut main = main(Span::from_millis(50));
    gets(&mut main, 1, 1, 100_000_000);
    hears(&mut main, FromCoordinator::MemberEnded { member: FAR });
    assert_eq!(run(&mut main, &[1]), [NEAR]);
}
