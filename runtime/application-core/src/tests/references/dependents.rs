//! Calls wait for the values that they need, and fail with them.

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use super::super::kit::{MAIN, ROOT, actor, class, effects, handle, inline, member, task, write};
use super::kit::{
    RUNNER, cancel, dependency, drops, failed, leaf, main, own, ran, ready, reference, run, start,
};
use crate::{
    ActorState, CallError, CallNumber, CallRequest, Carried, FromCoordinator, IncarnationNumber, Member,
    MemberEffect, ObjectId, ObjectValue, RequestNumber, TaskSpec, ToCallee, ToCaller, ToCoordinator,
};

const CALLEE: RankId = member(5);

#[test]
fn a_task_is_sent_when_all_that_it_needs_is_known() {
    let mut main = main();
    start(&mut main, &[], &[]);
    start(&mut main, &[], &[]);
    assert_eq!(start(&mut main, &[own(1), own(2), own(1)], &[]), []);
    assert_eq!(drops(&mut main, own(1)), [], "the task holds it");
    assert_eq!(ran(&mut main, 2, Ok(inline("one")), vec![]), [ready(own(1), Some(2))]);
    let carries = vec![leaf(own(1), "one"), leaf(own(2), "two"), leaf(own(1), "one")];
    assert_eq!(
        ran(&mut main, 3, Ok(inline("two")), vec![]),
        [ready(own(2), Some(3)), run(4, &[own(1), own(2), own(1)], carries)]
    );
    assert_eq!(start(&mut main, &[own(2)], &[]), [run(5, &[own(2)], vec![leaf(own(2), "two")])]);
}

#[test]
fn a_task_that_waits_counts_for_its_caller_and_can_be_cancelled() {
    let mut main = main();
    start(&mut main, &[], &[]);
    start(&mut main, &[own(1)], &[]);
    assert!(!main.is_idle());
    assert_eq!(drops(&mut main, own(2)), [ready(own(2), Some(3))], "it is cancelled");
    assert_eq!(drops(&mut main, own(1)), [cancel(2)], "nothing else holds it");
    assert_eq!(ran(&mut main, 2, Err(CallError::Cancelled), vec![]), [ready(own(1), Some(2))]);
    assert!(main.is_idle());
}

/// A main that holds actor 1, which is ready.
fn main_with_actor() -> Member {
    let mut main = main();
    let found = FromCoordinator::Found { request: RequestNumber(1), actor: Some(actor(1)) };
    effects(|all| main.receive(found, all));
    let first = calls(&mut main, &[]);
    assert_eq!(first, [MemberEffect::ToCoordinator(ToCoordinator::Watch { actor: actor(1) })]);
    let state = ActorState::Ready { member: CALLEE, incarnation: IncarnationNumber(1) };
    let state = FromCoordinator::State { actor: actor(1), state };
    assert_eq!(effects(|all| main.receive(state, all)), [call(2, &[], vec![])]);
    main
}

/// A method is called for a reference.
fn calls(main: &mut Member, needs: &[ObjectId]) -> Vec<MemberEffect> {
    let request = CallRequest { needs: needs.to_vec(), ..write() };
    let carries = needs.iter().map(|it| reference(*it)).collect();
    effects(|all| _ = main.call_for_reference(actor(1), request, carries, all).unwrap())
}

fn call(call: u64, needs: &[ObjectId], carries: Vec<Carried>) -> MemberEffect {
    let (call, request) = (CallNumber(call), CallRequest { needs: needs.to_vec(), ..write() });
    let frame = ToCallee::Call { actor: actor(1), call, request, carries };
    MemberEffect::ToCallee { to: CALLEE, frame }
}

#[test]
fn a_method_waits_for_what_it_needs_and_later_calls_of_its_actor_wait_behind_it() {
    let mut main = main_with_actor();
    start(&mut main, &[], &[]);
    assert_eq!(calls(&mut main, &[own(2)]), []);
    assert_eq!(calls(&mut main, &[]), []);
    assert_eq!(
        ran(&mut main, 3, Ok(inline("value")), vec![]),
        [ready(own(2), Some(3)), call(4, &[own(2)], vec![leaf(own(2), "value")]), call(5, &[], vec![])]
    );
}

#[test]
fn a_method_that_needs_what_failed_fails_and_those_behind_it_go_on() {
    let mut main = main_with_actor();
    start(&mut main, &[], &[]);
    calls(&mut main, &[own(2)]);
    calls(&mut main, &[]);
    assert_eq!(
        ran(&mut main, 3, Err(failed()), vec![]),
        [ready(own(2), Some(3)), ready(own(3), Some(4)), call(5, &[], vec![])]
    );
    assert_eq!(main.object_value(own(3)), Some(ObjectValue::Failed(dependency())));
    let request = CallRequest { needs: vec![own(3)], ..write() };
    let at_once = main.call(actor(1), request, vec![reference(own(3))], &mut vec![]);
    assert_eq!(at_once, Err(dependency()));
}

#[test]
fn calls_of_an_actor_keep_their_order_when_a_cancelled_one_takes_others_with_it() {
    let mut main = main_with_actor();
    start(&mut main, &[], &[]);
    calls(&mut main, &[own(2)]);
    calls(&mut main, &[]);
    calls(&mut main, &[own(3)]);
    calls(&mut main, &[]);
    assert_eq!(
        effects(|all| main.cancel(actor(1), CallNumber(4), all)),
        [ready(own(3), Some(4)), call(5, &[], vec![]), ready(own(5), Some(6)), call(7, &[], vec![])]
    );
}

#[test]
fn a_call_whose_actor_ends_waits_for_nothing_more() {
    let mut main = main_with_actor();
    start(&mut main, &[], &[]);
    calls(&mut main, &[own(2)]);
    let end = crate::ActorEnd::Stopped;
    let state = FromCoordinator::State { actor: actor(1), state: ActorState::Ended(end.clone()) };
    assert_eq!(effects(|all| main.receive(state, all)), [ready(own(1), Some(2)), ready(own(3), Some(4))]);
    assert_eq!(main.object_value(own(3)), Some(ObjectValue::Failed(CallError::Ended(end))));
    assert_eq!(ran(&mut main, 3, Ok(inline("value")), vec![]), [ready(own(2), Some(3))]);
    for it in [own(1), own(2), own(3)] {
        drops(&mut main, it);
    }
    effects(|all| main.release(handle(1), all));
    assert!(main.is_idle());
}

/// The coordinator acts on what it hears last.
#[test]
fn what_is_wanted_for_tasks_that_waited_is_said_last() {
    let mut main = Member::new(MAIN, ROOT);
    for _ in 0..9 {
        start(&mut main, &[], &[]);
    }
    for _ in 0..40 {
        start(&mut main, &[own(1)], &[]);
    }
    let joined = FromCoordinator::RunnerJoined { class: class(), runner: RUNNER };
    effects(|all| main.receive(joined, all));
    let (call, result, took) = (CallNumber(1), Ok(inline("value")), Span::from_millis(40));
    let answer = ToCaller::Ran { call, result, carries: vec![], took };
    let want = |runners| MemberEffect::ToCoordinator(ToCoordinator::WantRunners { class: class(), runners });
    assert_eq!(
        effects(|all| main.receive_from_callee(RUNNER, answer, all)),
        [ready(own(1), Some(1)), run(3, &[], vec![]), want(4), want(8), want(16), want(32)]
    );
}

/// The longest chain of one caller, each task of which needs the value of the one before.
const LENGTH: u64 = 10_000;

fn chain() -> Member {
    let mut main = main();
    start(&mut main, &[], &[]);
    for number in 1..LENGTH {
        assert_eq!(start(&mut main, &[own(number)], &[]), []);
    }
    assert_eq!(main.run_task(task(), &mut vec![]), Err(CallError::Full));
    main
}

#[test]
fn a_long_chain_fails_with_the_first_error() {
    let mut main = chain();
    let all: Vec<MemberEffect> = (1..=LENGTH).map(|number| ready(own(number), Some(number + 1))).collect();
    assert_eq!(ran(&mut main, 2, Err(failed()), vec![]), all);
    assert_eq!(main.object_value(own(1)), Some(ObjectValue::Failed(failed())));
    for number in 2..=LENGTH {
        assert_eq!(main.object_value(own(number)), Some(ObjectValue::Failed(dependency())));
    }
    (1..=LENGTH).for_each(|number| _ = drops(&mut main, own(number)));
    assert!(main.is_idle());
}

#[test]
fn a_long_chain_is_cancelled_from_its_end() {
    let mut main = chain();
    for number in 1..LENGTH {
        assert_eq!(drops(&mut main, own(number)), [], "the next one holds it");
    }
    let ended = (2..=LENGTH).rev().map(|number| ready(own(number), Some(number + 1)));
    assert_eq!(drops(&mut main, own(LENGTH)), ended.chain([cancel(2)]).collect::<Vec<_>>());
    ran(&mut main, 2, Err(CallError::Cancelled), vec![]);
    assert!(main.is_idle());
}

#[test]
fn a_long_chain_of_values_is_dropped() {
    let mut main = main();
    let object = |number| vec![reference(own(number))];
    effects(|all| _ = main.keep_inline(Bytes::new(), vec![], all));
    for number in 1..LENGTH * 10 {
        effects(|all| _ = main.keep_inline(Bytes::new(), object(number), all));
        drops(&mut main, own(number));
    }
    assert_eq!(drops(&mut main, own(LENGTH * 10)).len() as u64, LENGTH * 10 - 1, "all but a leaf are shared");
    assert!(main.is_idle());
    let spec = TaskSpec { needs: vec![own(1)], ..task() };
    assert!(matches!(main.run_task(spec, &mut vec![]), Err(CallError::Refused(_))));
}
