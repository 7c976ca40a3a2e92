//! Runners of tasks that end so that others get what they hold.

use cohabit_types::{JobId, Share};

use super::kit::{MAIN, actor, class, effects, gpu_class, spec};
use super::task_runners::{
    application, cancel, connects, end, ends, leaves, live, process, received, report, submit, submitted,
    wants,
};
use crate::{
    Coordinator, CoordinatorEffect, GangSpec, RequestNumber, RunnerShortage, RunnerState, TaskClass,
    ToCoordinator,
};

const ACTOR: JobId = JobId::new(50);

fn waits(it: &mut Coordinator, job: JobId, shortage: RunnerShortage) -> Vec<CoordinatorEffect> {
    let waiting = RunnerState::Waiting { why: "it waits".to_owned(), shortage: Some(shortage) };
    report(it, job, 0, waiting)
}

fn create(it: &mut Coordinator, gpus: Share) -> Vec<CoordinatorEffect> {
    let gang = GangSpec { gpus, ..spec() };
    received(it, MAIN, ToCoordinator::Create { request: RequestNumber(1), gang, carries: Vec::new() })
}

/// An actor whose job waits.
fn actor_waits(it: &mut Coordinator, shortage: RunnerShortage) -> Vec<CoordinatorEffect> {
    create(it, Share(0));
    effects(|effects| it.submitted(actor(1), Ok(ACTOR), effects));
    waits(it, ACTOR, shortage)
}

fn due(it: &mut Coordinator) -> Vec<CoordinatorEffect> {
    effects(|effects| it.yield_due(effects))
}

fn class_with(claims: &'static [u8]) -> TaskClass {
    TaskClass { gpus: Share(0), claims: bytes::Bytes::from_static(claims) }
}

const NEXT: CoordinatorEffect = CoordinatorEffect::AwaitYield;

#[test]
fn runners_end_one_after_the_other_until_the_actor_has_room() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 4);
    live(&mut it, 1..=4);
    assert_eq!(actor_waits(&mut it, RunnerShortage::Host), [NEXT]);
    assert_eq!(wants(&mut it, MAIN, class(), 8), [], "there are not to be more");
    assert_eq!(due(&mut it), [leaves(MAIN, 4), end(4), NEXT]);
    assert_eq!(due(&mut it), [NEXT], "it has time for what it has started");
    let ended = ends(&mut it, 4, 0);
    assert!(!ended.iter().any(|it| matches!(it, CoordinatorEffect::SubmitTaskRunner { .. })), "{ended:?}");
    assert_eq!(due(&mut it), [leaves(MAIN, 3), end(3), NEXT]);
    for _ in 0..5 {
        assert_eq!(due(&mut it), [NEXT]);
    }
    assert_eq!(due(&mut it), [leaves(MAIN, 2), end(2), NEXT], "what runner 3 has started may never end");
    let grown = report(&mut it, ACTOR, 0, RunnerState::Live);
    assert_eq!(grown, [submit(5, class())], "as many more as live");
    assert_eq!(due(&mut it), []);
}

#[test]
fn the_last_runner_stays_and_what_does_not_help_is_left() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    live(&mut it, 1..=1);
    assert_eq!(actor_waits(&mut it, RunnerShortage::Jobs), [NEXT]);
    wants(&mut it, MAIN, class(), 2);
    for _ in 0..14 {
        assert_eq!(due(&mut it), [NEXT]);
    }
    assert_eq!(due(&mut it), [submit(2, class())], "the actor is left out");
    assert_eq!(waits(&mut it, ACTOR, RunnerShortage::Jobs), [], "as long as it waits");
    report(&mut it, ACTOR, 0, RunnerState::Live);
    let surplus = CoordinatorEffect::AwaitSurplus { class: class() };
    assert_eq!(waits(&mut it, ACTOR, RunnerShortage::Jobs), [NEXT, surplus]);
}

#[test]
fn who_waits_for_gpus_gets_none_from_runners_without() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 2);
    live(&mut it, 1..=2);
    assert_eq!(actor_waits(&mut it, RunnerShortage::Gpus), []);
    let mut it = application(None);
    wants(&mut it, MAIN, gpu_class(500), 2);
    live(&mut it, 1..=2);
    assert_eq!(actor_waits(&mut it, RunnerShortage::Gpus), [NEXT]);
    assert_eq!(due(&mut it)[1..], [end(2), NEXT]);
}

#[test]
fn who_waits_for_the_ceiling_gets_room_below_it() {
    let mut it = application(Some(Share(1_000)));
    wants(&mut it, MAIN, gpu_class(500), 2);
    live(&mut it, 1..=2);
    assert_eq!(create(&mut it, Share(500))[1..], [NEXT]);
    assert_eq!(due(&mut it)[1..], [end(2), NEXT]);
    let ended = ends(&mut it, 2, 0);
    let submitted = |it: &&CoordinatorEffect| matches!(it, CoordinatorEffect::Submit { .. });
    assert_eq!(ended.iter().filter(submitted).count(), 1, "{ended:?}");
    assert_eq!(due(&mut it), []);
}

#[test]
fn classes_give_to_those_that_have_fewer_runners() {
    let mut it = application(None);
    let other = class_with(b"others");
    wants(&mut it, MAIN, class(), 5);
    live(&mut it, 1..=4);
    submitted(&mut it, 5);
    assert_eq!(
        waits(&mut it, process(5).job(), RunnerShortage::Host),
        [],
        "nobody has more of another class"
    );
    assert_eq!(wants(&mut it, MAIN, other.clone(), 9), [submit(6, other)]);
    submitted(&mut it, 6);
    let surplus = CoordinatorEffect::AwaitSurplus { class: class() };
    assert_eq!(waits(&mut it, process(6).job(), RunnerShortage::Host), [NEXT, surplus]);
    assert_eq!(effects(|effects| it.surplus_over(&class(), effects)), [cancel(5)]);
    assert_eq!(due(&mut it)[1..], [end(4), NEXT]);
    ends(&mut it, 4, 0);
    live(&mut it, 6..=6);
    submitted(&mut it, 7);
    waits(&mut it, process(7).job(), RunnerShortage::Host);
    assert_eq!(due(&mut it)[1..], [end(3), NEXT], "three and one");
    ends(&mut it, 3, 0);
    connects(&mut it, 7);
    submitted(&mut it, 10);
    waits(&mut it, process(10).job(), RunnerShortage::Host);
    assert_eq!(due(&mut it), [], "two of each");
}
