//! How references travel: with their value, by the name of a stored object, or through the coordinator.

use bytes::Bytes;
use cohabit_types::Span;

use super::super::kit::{MAIN, ROOT, carried as handle_on_its_way, effects, handle, inline, task};
use super::kit::{
    LARGE, RUNNER, cancel, carried, drops, failed, finish, hears, leaf, lend, main, object, own, ran, ready,
    reference, release, run, share, shared_inline, start, stored, to_directory, watch,
};
use crate::{
    CallError, CallValue, CarriedValue, FromCoordinator, FromDirectory, MAX_INLINE, Member, MemberEffect,
    ObjectId, ObjectValue, RequestNumber, SharedValue, TaskSpec, ToDirectory,
};

fn keep(main: &mut Member, value: &'static str, carries: &[crate::HeldId]) -> Vec<MemberEffect> {
    effects(|all| _ = main.keep_inline(Bytes::from_static(value.as_bytes()), carries.to_vec(), all))
}

/// The main holds actor 8.
fn main_with_actor() -> Member {
    let mut main = main();
    let found = FromCoordinator::Found { request: RequestNumber(1), actor: Some(crate::ActorId(8)) };
    effects(|all| main.receive(found, all));
    main
}

fn resolve(object: ObjectId, value: SharedValue) -> MemberEffect {
    to_directory(ToDirectory::Resolve { object, value })
}

#[test]
fn a_value_without_handles_travels_with_its_reference() {
    let mut main = main();
    assert_eq!(keep(&mut main, "leaf", &[]), []);
    assert_eq!(start(&mut main, &[], &[own(1)]), [run(2, &[], vec![leaf(own(1), "leaf")])]);
    assert_eq!(drops(&mut main, own(1)), [], "the task holds it");
    let shared = share(own(2), Some(shared_inline("done", vec![leaf(own(1), "leaf")])));
    assert_eq!(
        ran(&mut main, 2, Ok(inline("done")), vec![leaf(own(1), "leaf")]),
        [shared, ready(own(2), Some(2))]
    );
    let value = ObjectValue::Inline(Bytes::from_static(b"done"));
    assert_eq!(main.object_value(own(2)), Some(value));
    let inner = ObjectValue::Inline(Bytes::from_static(b"leaf"));
    assert_eq!(main.object_value(own(1)), Some(inner), "the value holds it");
}

#[test]
fn a_value_with_handles_is_shared_at_once() {
    let mut main = main_with_actor();
    let shared = share(own(1), Some(shared_inline("value", vec![handle_on_its_way(8)])));
    assert_eq!(keep(&mut main, "value", &[handle(8)]), [shared]);
    assert_eq!(effects(|all| main.release(handle(8), all)), [], "the value holds it");
    assert_eq!(
        start(&mut main, &[], &[own(1)]),
        [lend(reference(own(1)), RUNNER), run(2, &[], vec![carried(own(1), CarriedValue::Shared)])],
        "not once more"
    );
    assert_eq!(drops(&mut main, own(1)), []);
    assert_eq!(
        ran(&mut main, 2, Ok(inline("done")), vec![]),
        [ready(own(2), Some(2)), release(reference(own(1)), &[(ROOT, 1)]), release(handle(8), &[(ROOT, 1)])]
    );
    drops(&mut main, own(2));
    assert!(main.is_idle());
}

#[test]
fn a_value_of_a_call_with_handles_is_shared_when_it_arrives() {
    let mut main = main();
    start(&mut main, &[], &[]);
    let shared = share(own(1), Some(shared_inline("value", vec![handle_on_its_way(9)])));
    assert_eq!(
        ran(&mut main, 2, Ok(inline("value")), vec![handle_on_its_way(9)]),
        [shared, ready(own(1), Some(2))]
    );
    assert_eq!(
        drops(&mut main, own(1)),
        [release(reference(own(1)), &[(ROOT, 1)]), release(handle(9), &[(RUNNER, 1)])]
    );
    assert!(main.is_idle());
}

#[test]
fn a_pending_reference_is_shared_when_it_is_passed_on_and_resolved_when_its_call_ends() {
    let mut main = main();
    assert_eq!(start(&mut main, &[], &[]), [run(2, &[], vec![])]);
    let shared = carried(own(1), CarriedValue::Shared);
    let lent = lend(reference(own(1)), RUNNER);
    assert_eq!(
        start(&mut main, &[], &[own(1)]),
        [share(own(1), None), lent.clone(), run(3, &[], vec![shared.clone()])]
    );
    assert_eq!(start(&mut main, &[], &[own(1)]), [lent, run(4, &[], vec![shared])]);
    assert_eq!(
        ran(&mut main, 2, Ok(inline("value")), vec![handle_on_its_way(9)]),
        [resolve(own(1), shared_inline("value", vec![handle_on_its_way(9)])), ready(own(1), Some(2))]
    );
}

#[test]
fn who_gets_a_shared_reference_watches_it_and_holds_what_is_in_its_value() {
    let mut main = main();
    start(&mut main, &[], &[]);
    let foreign = object(RUNNER, 7);
    let on_its_way = || carried(foreign, CarriedValue::Shared);
    assert_eq!(
        ran(&mut main, 2, Ok(inline("value")), vec![on_its_way()]),
        [
            watch(foreign, RUNNER),
            share(own(1), Some(shared_inline("value", vec![on_its_way()]))),
            ready(own(1), Some(2)),
        ]
    );
    assert!(main.hold(reference(foreign)));
    assert_eq!(main.object_value(foreign), None);
    let value = shared_inline("inner", vec![handle_on_its_way(9)]);
    let known = FromDirectory::Known { object: foreign, value };
    assert_eq!(hears(&mut main, known.clone()), [ready(foreign, None)]);
    let value = ObjectValue::Inline(Bytes::from_static(b"inner"));
    assert_eq!(main.object_value(foreign), Some(value));
    assert_eq!(drops(&mut main, foreign), [], "another value holds it");
    assert_eq!(
        drops(&mut main, own(1)),
        [
            release(reference(own(1)), &[(ROOT, 1)]),
            release(reference(foreign), &[(RUNNER, 1)]),
            release(handle(9), &[(ROOT, 1)]),
        ]
    );
    let late = [release(handle(9), &[(ROOT, 1)])];
    assert_eq!(hears(&mut main, known), late, "nobody waits for it any more");
    assert!(main.is_idle());
}

#[test]
fn a_stored_object_is_lent_by_its_own_name_through_references_to_it_too() {
    let mut main = main();
    start(&mut main, &[], &[]);
    let it = object(RUNNER, 5);
    let named = |object| carried(object, CarriedValue::Stored(stored(it, false)));
    let value = || Ok(CallValue::Stored(stored(it, false)));
    assert_eq!(ran(&mut main, 2, value(), vec![named(it)]), [ready(own(1), Some(2))]);
    assert_eq!(
        start(&mut main, &[own(1)], &[]),
        [lend(reference(it), RUNNER), run(3, &[own(1)], vec![named(own(1))])]
    );
    assert_eq!(
        ran(&mut main, 3, value(), vec![named(own(1))]),
        [ready(own(2), Some(3))],
        "it came as the value of another reference"
    );
    assert_eq!(drops(&mut main, own(2)), []);
    assert_eq!(drops(&mut main, own(1)), [release(reference(it), &[(RUNNER, 2)])]);
    assert!(main.is_idle());
}

#[test]
fn what_does_not_fit_into_a_frame_goes_through_the_coordinator() {
    let mut main = main();
    let bytes = Bytes::from(vec![7; LARGE]);
    for _ in 0..2 {
        effects(|all| _ = main.keep_inline(bytes.clone(), vec![], all));
    }
    let value = SharedValue::Inline { value: bytes.clone(), carries: vec![] };
    assert_eq!(
        start(&mut main, &[], &[own(1), own(2)]),
        [
            share(own(2), Some(value)),
            lend(reference(own(2)), RUNNER),
            run(
                2,
                &[],
                vec![carried(own(1), CarriedValue::Inline(bytes)), carried(own(2), CarriedValue::Shared)]
            ),
        ]
    );
    assert_eq!(drops(&mut main, own(1)), []);
    ran(&mut main, 2, Ok(inline("")), vec![]);
    assert_eq!(drops(&mut main, own(2)), [release(reference(own(2)), &[(ROOT, 1)])]);
    use crate::limits::MAX_ATTACHED;
    const { assert!(LARGE * 2 > MAX_ATTACHED && MAX_INLINE * 16 <= MAX_ATTACHED) };
}

#[test]
fn errors_that_do_not_fit_into_a_frame_go_through_the_coordinator() {
    let mut main = main();
    let error = CallError::Failed("x".repeat(LARGE));
    for (object, call) in [(own(1), 2), (own(2), 3)] {
        start(&mut main, &[], &[]);
        assert_eq!(ran(&mut main, call, Err(error.clone()), vec![]), [ready(object, Some(call))]);
    }
    let sent = start(&mut main, &[], &[own(1), own(2)]);
    let carries =
        vec![carried(own(1), CarriedValue::Failed(error.clone())), carried(own(2), CarriedValue::Shared)];
    let shared = share(own(2), Some(SharedValue::Failed(error)));
    assert_eq!(sent, [shared, lend(reference(own(2)), RUNNER), run(4, &[], carries)]);
}

#[test]
fn the_last_drop_of_a_private_reference_cancels_its_call() {
    let mut main = main();
    start(&mut main, &[], &[]);
    assert!(main.hold(reference(own(1))));
    assert_eq!(drops(&mut main, own(1)), []);
    assert_eq!(drops(&mut main, own(1)), [cancel(2)]);
    assert!(!main.hold(reference(own(1))), "it is gone");
    let value = vec![handle_on_its_way(9)];
    assert_eq!(
        ran(&mut main, 2, Ok(inline("too late")), value),
        [ready(own(1), Some(2)), release(handle(9), &[(RUNNER, 1)])]
    );
    assert!(main.is_idle());
}

#[test]
fn the_call_of_a_shared_reference_ends_only_when_the_coordinator_says_that_nobody_holds_it() {
    let mut main = main();
    start(&mut main, &[], &[]);
    start(&mut main, &[], &[own(1)]);
    ran(&mut main, 3, Ok(inline("")), vec![]);
    let unwanted = || FromDirectory::Unwanted { object: own(1) };
    assert_eq!(hears(&mut main, unwanted()), [], "it is held");
    assert_eq!(drops(&mut main, own(1)), [release(reference(own(1)), &[(ROOT, 1)])]);
    assert_eq!(hears(&mut main, unwanted()), [cancel(2)]);
    assert_eq!(hears(&mut main, unwanted()), [], "once");
    let error = CallError::Cancelled;
    assert_eq!(
        ran(&mut main, 2, Err(error.clone()), vec![]),
        [resolve(own(1), SharedValue::Failed(error)), ready(own(1), Some(2))]
    );
    drops(&mut main, own(2));
    assert!(main.is_idle());
}

#[test]
fn a_shared_reference_that_nobody_holds_here_comes_back() {
    let mut main = main();
    start(&mut main, &[], &[]);
    start(&mut main, &[], &[own(1)]);
    drops(&mut main, own(1));
    let back = vec![carried(own(1), CarriedValue::Shared)];
    assert_eq!(
        ran(&mut main, 3, Ok(inline("")), back),
        [
            share(own(2), Some(shared_inline("", vec![carried(own(1), CarriedValue::Shared)]))),
            ready(own(2), Some(3)),
        ]
    );
    assert_eq!(
        ran(&mut main, 2, Ok(inline("value")), vec![]),
        [resolve(own(1), shared_inline("value", vec![])), ready(own(1), Some(2))]
    );
    assert_eq!(main.object_value(own(1)), Some(ObjectValue::Inline(Bytes::from_static(b"value"))));
}

#[test]
fn detached_calls_go_on() {
    let mut main = main();
    start(&mut main, &[], &[]);
    main.detach_reference(own(1));
    assert_eq!(drops(&mut main, own(1)), []);
    assert!(!main.is_idle());
    start(&mut main, &[], &[]);
    main.detach_reference(own(2));
    start(&mut main, &[], &[own(2)]);
    ran(&mut main, 4, Ok(inline("")), vec![]);
    drops(&mut main, own(2));
    assert_eq!(hears(&mut main, FromDirectory::Unwanted { object: own(2) }), []);
    assert_eq!(ran(&mut main, 2, Ok(inline("")), vec![]), [ready(own(1), Some(2))]);
    ran(&mut main, 3, Ok(inline("")), vec![]);
    drops(&mut main, own(3));
    assert!(main.is_idle());
}

#[test]
fn a_reference_that_fails_by_hand_cancels_its_call_and_keeps_its_error() {
    let mut main = main();
    start(&mut main, &[], &[]);
    start(&mut main, &[], &[own(1)]);
    let error = CallError::TimedOut(Span::from_secs(3));
    let fail = |main: &mut Member| effects(|all| main.fail_reference(own(1), error.clone(), all));
    assert_eq!(
        fail(&mut main),
        [resolve(own(1), SharedValue::Failed(error.clone())), ready(own(1), None), cancel(2)]
    );
    assert_eq!(fail(&mut main), [], "it has");
    let late = ran(&mut main, 2, Ok(inline("late")), vec![handle_on_its_way(9)]);
    assert_eq!(late, [finish(2, Ok(inline("late")), &[handle(9)])], "its call has no reference any more");
    assert_eq!(main.object_value(own(1)), Some(ObjectValue::Failed(error.clone())));
    assert_eq!(
        start(&mut main, &[], &[own(1)]),
        [run(4, &[], vec![carried(own(1), CarriedValue::Failed(error))])]
    );
}

#[test]
fn a_stored_object_is_told_with_the_handles_in_it_which_are_asked_for() {
    let mut main = main_with_actor();
    let object = main.new_object();
    let told = effects(|all| _ = main.stored(object, 100_000, &[handle(8)], all));
    let carries = vec![handle_on_its_way(8)];
    assert_eq!(told, [to_directory(ToDirectory::Stored { stored: stored(own(1), true), carries })]);
    let question = effects(|all| assert_eq!(main.open_object(object, all), RequestNumber(1)));
    assert_eq!(question, [to_directory(ToDirectory::Open { request: RequestNumber(1), object })]);
    let opened = FromDirectory::Opened { request: RequestNumber(1), carries: vec![handle_on_its_way(8)] };
    let answer = MemberEffect::Opened { request: RequestNumber(1), carries: vec![handle(8)] };
    assert_eq!(hears(&mut main, opened), [answer]);
    assert_eq!(drops(&mut main, object), [release(reference(object), &[(ROOT, 1)])]);
    effects(|all| main.release(handle(8), all));
    assert_eq!(effects(|all| main.release(handle(8), all)), [release(handle(8), &[(ROOT, 2)])]);
    assert!(main.is_idle());
}

#[test]
fn a_reference_that_the_process_does_not_hold_is_refused() {
    let mut main = main();
    let foreign = object(RUNNER, 7);
    assert!(!main.hold(reference(foreign)), "as from a file");
    let spec = TaskSpec { carries: vec![reference(foreign)], ..task() };
    let text = format!("this process holds no object {foreign}");
    assert_eq!(main.run_task_for_reference(spec, &mut vec![]), Err(CallError::Refused(text)));
    let spec = TaskSpec { needs: vec![foreign], ..task() };
    let text = format!("this process holds no reference to object {foreign}");
    assert_eq!(main.run_task(spec, &mut vec![]), Err(CallError::Refused(text)));
    start(&mut main, &[], &[]);
    ran(&mut main, 2, Err(failed()), vec![]);
    let spec = TaskSpec { needs: vec![own(2)], carries: vec![reference(own(2))], ..task() };
    let (error, id) = (CallError::Dependency("no such file".to_owned()), own(2).maker);
    assert_eq!((main.run_task(spec, &mut vec![]), id), (Err(error), MAIN));
}
