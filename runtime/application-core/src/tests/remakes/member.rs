//! A process tells how its values were made, and makes lost ones again.

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use super::super::kit::{MAIN, ROOT, class, effects, inline, member, task};
use crate::{
    CallError, CallNumber, CallValue, Carried, CarriedValue, FromCoordinator, FromDirectory, HeldId, Lineage,
    Member, MemberEffect, NodeNumber, ObjectId, StoredObject, TaskRequest, TaskSpec, Ticket, ToCallee,
    ToCaller, ToCoordinator, ToDirectory,
};

const RUNNER: RankId = member(3);

const fn object(number: u64) -> ObjectId {
    ObjectId { maker: RUNNER, number }
}

const fn stored(number: u64, home: u32) -> StoredObject {
    StoredObject { object: object(number), bytes: 100_000, home: NodeNumber(home), has_handles: false }
}

const fn lent(number: u64) -> Carried {
    Carried::Object { object: object(number), value: CarriedValue::Stored(stored(number, 1)) }
}

const fn tells(report: ToDirectory) -> MemberEffect {
    MemberEffect::ToCoordinator(ToCoordinator::Object(report))
}

fn lineage(needs: &[u64], retries: u32) -> Lineage {
    Lineage {
        class: class(),
        function: 3,
        arguments: Bytes::from_static(b"arguments"),
        needs: needs.iter().map(|number| object(*number)).collect(),
        carries: needs.iter().map(|number| lent(*number)).collect(),
        retries,
    }
}

/// A main with a runner.
fn main() -> Member {
    let mut main = Member::new(MAIN, ROOT);
    let joined = FromCoordinator::RunnerJoined { class: class(), runner: RUNNER };
    effects(|all| main.receive(joined, all));
    main
}

fn ran(
    main: &mut Member,
    call: u64,
    result: Result<CallValue, CallError>,
    carries: Vec<Carried>,
) -> Vec<MemberEffect> {
    let frame = ToCaller::Ran { call: CallNumber(call), result, carries, took: Span::ZERO };
    effects(|all| main.receive_from_callee(RUNNER, frame, all))
}

fn remake(main: &mut Member, lineage: Lineage) -> Vec<MemberEffect> {
    let news = FromDirectory::Remake { object: object(9), remake: 4, lineage: Box::new(lineage) };
    effects(|all| main.receive(FromCoordinator::Object(news), all))
}

fn drops(main: &mut Member, number: u64) {
    effects(|all| main.release(HeldId::Object(object(number)), all));
}

/// The task that makes object 9 goes to the runner.
fn runs(call: u64, needs: &[u64]) -> Vec<MemberEffect> {
    let lend = |number: &u64| {
        let held = HeldId::Object(object(*number));
        MemberEffect::ToCoordinator(ToCoordinator::Lend { held, to: RUNNER })
    };
    let Lineage { function, arguments, needs: objects, carries, .. } = lineage(needs, 0);
    let store_as = Some(object(9));
    let task = TaskRequest { function, depth: 0, arguments, needs: objects, resume: None, store_as };
    let frame = ToCallee::Run { call: CallNumber(call), task, carries };
    let run = MemberEffect::ToCallee { to: RUNNER, frame };
    needs.iter().map(lend).chain([run]).collect()
}

#[test]
fn a_caller_tells_how_a_value_on_a_further_node_was_made_before_it_can_release_it() {
    let mut main = main();
    let retried = || TaskSpec { retries: 2, ..task() };
    effects(|all| _ = main.run_task(retried(), all).unwrap());
    let value = |home| Ok(CallValue::Stored(stored(1, home)));
    let made = ToDirectory::Made { object: object(1), lineage: Box::new(lineage(&[], 2)) };
    let held = vec![HeldId::Object(object(1))];
    let finish = |call, home| {
        let (call, carries) = (CallNumber(call), held.clone());
        MemberEffect::Finish { call, result: value(home), carries }
    };
    assert_eq!(ran(&mut main, 1, value(1), vec![lent(1)]), [tells(made), finish(1, 1)]);
    effects(|all| _ = main.run_task(retried(), all).unwrap());
    assert_eq!(ran(&mut main, 2, value(0), vec![lent(1)]), [finish(2, 0)], "that node cannot be lost");
    effects(|all| _ = main.run_task(task(), all).unwrap());
    assert_eq!(ran(&mut main, 3, value(1), vec![lent(1)]), [finish(3, 1)], "it may not run again");
}

#[test]
fn a_lost_object_is_made_by_a_task_whose_value_nobody_gets() {
    let mut main = main();
    assert_eq!(remake(&mut main, lineage(&[1], 1))[..2], runs(1, &[1]));
    let value = StoredObject { object: object(9), ..stored(9, 1) };
    let remade = ToDirectory::Remade { object: object(9), remake: 4, runner: RUNNER };
    let release = |number, lender| {
        let held = HeldId::Object(object(number));
        MemberEffect::ToCoordinator(ToCoordinator::Release { held, settled: vec![(lender, 1)] })
    };
    assert_eq!(
        ran(&mut main, 1, Ok(CallValue::Stored(value)), vec![lent(9)]),
        [tells(remade), release(9, RUNNER), release(1, ROOT)]
    );
    assert!(main.is_idle());
}

#[test]
fn a_remake_that_fails_says_why() {
    let mut main = main();
    let failed = |error| tells(ToDirectory::NotRemade { object: object(9), remake: 4, error });
    remake(&mut main, lineage(&[], 0));
    let error = || CallError::Failed("no such file".to_owned());
    assert_eq!(ran(&mut main, 1, Err(error()), vec![]), [failed(error())]);
    remake(&mut main, lineage(&[], 0));
    let refused = CallError::Refused("its runner did not store the value again".to_owned());
    assert_eq!(ran(&mut main, 2, Ok(inline("value")), vec![]), [failed(refused)]);
    let value = CarriedValue::Failed(error());
    let carries = vec![Carried::Object { object: object(1), value }];
    let dependency = CallError::Dependency("no such file".to_owned());
    let needs = Lineage { carries, ..lineage(&[1], 0) };
    assert_eq!(remake(&mut main, needs), [failed(dependency)]);
    assert!(main.is_idle());
}

#[test]
fn a_remake_waits_for_what_it_needs() {
    let mut main = main();
    let carries = vec![Carried::Object { object: object(1), value: CarriedValue::Shared }];
    let watch = ToDirectory::Watch { object: object(1), lender: ROOT };
    assert_eq!(remake(&mut main, Lineage { carries, ..lineage(&[1], 0) }), [tells(watch)]);
    let value = crate::SharedValue::Failed(CallError::Failed("no such file".to_owned()));
    let known = FromDirectory::Known { object: object(1), value };
    let told = effects(|all| main.receive(FromCoordinator::Object(known), all));
    let error = CallError::Dependency("no such file".to_owned());
    let not_remade = tells(ToDirectory::NotRemade { object: object(9), remake: 4, error });
    assert!(told.contains(&not_remade), "{told:?}");
    assert!(main.is_idle());
}

#[test]
fn a_remake_goes_before_other_tasks() {
    let mut main = main();
    (0..3).for_each(|_| effects(|all| _ = main.run_task(task(), all).unwrap()).clear());
    assert_eq!(remake(&mut main, lineage(&[], 0)).len(), 0, "two are on their way");
    let sent = ran(&mut main, 1, Ok(inline("done")), vec![]);
    assert!(sent.contains(&runs(4, &[])[0]), "{sent:?}");
    drops(&mut main, 1);
}

#[test]
fn a_runner_is_told_under_which_name_to_store() {
    let mut runner = Member::new(RUNNER, ROOT);
    let serve = FromCoordinator::ServeTasks { class: class() };
    effects(|all| runner.receive(serve, all));
    for (call, store_as) in [(1, Some(object(9))), (2, None)] {
        let (function, arguments, needs) = (3, Bytes::new(), vec![]);
        let task = TaskRequest { function, depth: 0, arguments, needs, resume: None, store_as };
        let frame = ToCallee::Run { call: CallNumber(call), task, carries: vec![] };
        effects(|all| runner.receive_from_caller(MAIN, frame, all));
        assert_eq!(runner.store_as(Ticket(call)), store_as);
        effects(|all| runner.task_ended(Ticket(call), Ok(inline("value")), vec![], Span::ZERO, all));
    }
}

#[test]
fn a_maker_says_when_it_has_said_everything() {
    let mut main = main();
    let news = FromCoordinator::Object(FromDirectory::Inquire { object: object(1) });
    assert_eq!(effects(|all| main.receive(news, all)), [tells(ToDirectory::Said { object: object(1) })]);
}
