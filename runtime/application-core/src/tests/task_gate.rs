//! Tasks at their runner: one at a time, the deepest first; parking, rests, the end.

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use super::kit::{MAIN, ROOT, carried, class, effects, gpu_class, handle, inline, member};
use crate::{
    CallError, CallNumber, CallValue, Carried, FromCoordinator, Member, MemberEffect, TaskClass, TaskRequest,
    TaskWait, Ticket, ToCallee, ToCaller, ToCoordinator,
};

const RUNNER: RankId = member(3);
const OTHER: RankId = member(5);

fn request(depth: u32) -> TaskRequest {
    TaskRequest {
        function: 3,
        depth,
        arguments: Bytes::from_static(b"arguments"),
        needs: Vec::new(),
        resume: None,
        store_as: None,
    }
}

fn arrives(it: &mut Member, call: u64, task: TaskRequest) -> Vec<MemberEffect> {
    arrives_with(it, call, task, Vec::new())
}

fn arrives_with(it: &mut Member, call: u64, task: TaskRequest, carries: Vec<Carried>) -> Vec<MemberEffect> {
    let frame = ToCallee::Run { call: CallNumber(call), task, carries };
    effects(|effects| it.receive_from_caller(MAIN, frame, effects))
}

fn cancel(it: &mut Member, call: u64) -> Vec<MemberEffect> {
    let frame = ToCallee::Cancel { call: CallNumber(call) };
    effects(|effects| it.receive_from_caller(MAIN, frame, effects))
}

fn ends(it: &mut Member, ticket: u64) -> Vec<MemberEffect> {
    effects(|effects| it.task_ended(Ticket(ticket), value(), Vec::new(), took(), effects))
}

fn waits(it: &mut Member, ticket: u64) -> Vec<MemberEffect> {
    effects(|effects| it.task_waits(Ticket(ticket), TaskWait::Tasks, effects))
}

fn goes_on(it: &mut Member, ticket: u64) -> Vec<MemberEffect> {
    effects(|effects| it.task_goes_on(Ticket(ticket), effects))
}

fn told_to_end(it: &mut Member) -> Vec<MemberEffect> {
    effects(|effects| it.receive(FromCoordinator::End, effects))
}

fn value() -> Result<CallValue, CallError> {
    Ok(inline("value"))
}

const fn took() -> Span {
    Span::from_micros(70)
}

fn start(ticket: u64) -> MemberEffect {
    let TaskRequest { function, arguments, needs, .. } = request(0);
    MemberEffect::StartTask { ticket: Ticket(ticket), function, arguments, needs, carries: Vec::new() }
}

fn to_main(frame: ToCaller) -> MemberEffect {
    MemberEffect::ToCaller { to: MAIN, frame }
}

fn ran(call: u64) -> MemberEffect {
    to_main(ToCaller::Ran { call: CallNumber(call), result: value(), carries: Vec::new(), took: took() })
}

fn dropped(call: u64) -> MemberEffect {
    let (call, result) = (CallNumber(call), Err(CallError::Cancelled));
    to_main(ToCaller::Ran { call, result, carries: Vec::new(), took: Span::ZERO })
}

fn parked(call: u64) -> MemberEffect {
    to_main(ToCaller::Parked { call: CallNumber(call) })
}

fn returned(call: u64) -> MemberEffect {
    to_main(ToCaller::Returned { call: CallNumber(call) })
}

const fn rest(rest: u64) -> MemberEffect {
    MemberEffect::Rest { rest }
}

fn runner(class: TaskClass) -> Member {
    let mut runner = Member::new(RUNNER, ROOT);
    assert_eq!(effects(|it| runner.receive(FromCoordinator::ServeTasks { class }, it)), [rest(1)]);
    runner
}

#[test]
fn one_task_runs_at_a_time_and_the_deepest_of_the_others_is_next() {
    let mut it = runner(class());
    assert_eq!(arrives(&mut it, 1, request(0)), [start(1)]);
    for (call, depth) in [(2, 0), (3, 2), (4, 1), (5, 2)] {
        assert_eq!(arrives(&mut it, call, request(depth)), []);
    }
    assert_eq!(ends(&mut it, 1), [ran(1), start(3)]);
    assert_eq!(ends(&mut it, 3), [ran(3), start(5)]);
    assert_eq!(ends(&mut it, 5), [ran(5), start(4)]);
    assert_eq!(ends(&mut it, 4), [ran(4), start(2)]);
    assert_eq!(ends(&mut it, 2), [ran(2), rest(2)]);
    assert_eq!(ends(&mut it, 2), [], "it has ended");
}

#[test]
fn a_recalled_task_goes_back_unless_it_has_started() {
    let mut it = runner(class());
    (1..=2).for_each(|call| _ = arrives(&mut it, call, request(0)));
    let recall = |it: &mut Member, call| {
        let frame = ToCallee::Recall { call: CallNumber(call) };
        effects(|all| it.receive_from_caller(MAIN, frame, all))
    };
    assert_eq!(recall(&mut it, 1), [to_main(ToCaller::Kept { call: CallNumber(1) })]);
    assert_eq!(recall(&mut it, 2), [to_main(ToCaller::Returned { call: CallNumber(2) })]);
    assert_eq!(recall(&mut it, 2), [], "it is not here any more");
}

#[test]
fn tasks_that_come_before_the_class_is_known_wait_for_it() {
    let mut it = Member::new(RUNNER, ROOT);
    assert_eq!(arrives(&mut it, 1, request(0)), []);
    assert_eq!(
        effects(|effects| it.receive(FromCoordinator::ServeTasks { class: class() }, effects)),
        [start(1)]
    );
}

#[test]
fn a_task_that_waits_lets_others_start_and_its_caller_is_told_once() {
    let mut it = runner(class());
    arrives(&mut it, 1, request(0));
    arrives(&mut it, 2, request(0));
    assert_eq!(waits(&mut it, 1), [parked(1), start(2)]);
    assert_eq!(waits(&mut it, 1), []);
    assert_eq!(goes_on(&mut it, 1), []);
    assert_eq!(ends(&mut it, 2), [ran(2)]);
    assert_eq!(arrives(&mut it, 3, request(0)), [], "the first task is active");
    assert_eq!(waits(&mut it, 1), [start(3)]);
    assert_eq!(goes_on(&mut it, 1), []);
    assert_eq!(ends(&mut it, 1), [ran(1)]);
    assert_eq!(ends(&mut it, 3), [ran(3), rest(2)]);
}

#[test]
fn a_task_with_gpus_keeps_its_slot_while_it_waits() {
    let mut it = runner(gpu_class(500));
    arrives(&mut it, 1, request(0));
    arrives(&mut it, 2, request(0));
    assert_eq!(waits(&mut it, 1), []);
    assert_eq!(goes_on(&mut it, 1), []);
    assert_eq!(ends(&mut it, 1), [ran(1), start(2)]);
}

#[test]
fn calls_of_a_task_are_one_deeper_than_the_task() {
    let mut it = runner(class());
    arrives(&mut it, 1, request(4));
    let joined = FromCoordinator::RunnerJoined { class: class(), runner: OTHER };
    effects(|effects| it.receive(joined, effects));
    let depth = |it: &mut Member, caller| {
        let spec = crate::TaskSpec { caller, ..super::kit::task() };
        let sent = effects(|effects| _ = it.run_task(spec, effects).unwrap());
        sent.into_iter().find_map(|effect| {
            let MemberEffect::ToCallee { frame: ToCallee::Run { task, .. }, .. } = effect else {
                return None;
            };
            Some(task.depth)
        })
    };
    assert_eq!(depth(&mut it, Some(Ticket(1))), Some(5));
    assert_eq!(depth(&mut it, None), Some(0));
}

#[test]
fn a_cancelled_task_is_dropped_or_interrupted_and_answered_in_any_case() {
    let mut it = runner(class());
    arrives(&mut it, 1, request(0));
    arrives_with(&mut it, 2, request(0), vec![carried(9)]);
    let frame = ToCoordinator::Release { held: handle(9), settled: vec![(MAIN, 1)] };
    assert_eq!(cancel(&mut it, 2), [dropped(2), MemberEffect::ToCoordinator(frame)]);
    assert_eq!(cancel(&mut it, 1), [MemberEffect::Interrupt { ticket: Ticket(1) }]);
    assert_eq!(cancel(&mut it, 1), []);
    let cancelled = Err(CallError::Cancelled);
    let answer =
        ToCaller::Ran { call: CallNumber(1), result: cancelled.clone(), carries: vec![], took: took() };
    assert_eq!(
        effects(|effects| it.task_ended(Ticket(1), cancelled, vec![], took(), effects)),
        [to_main(answer), rest(2)]
    );
    assert_eq!(cancel(&mut it, 1), [], "it has ended");
}

#[test]
fn nothing_of_a_caller_that_has_ended_starts_and_what_has_started_is_interrupted() {
    let mut it = runner(class());
    arrives(&mut it, 1, request(0));
    waits(&mut it, 1);
    arrives(&mut it, 2, request(0));
    arrives(&mut it, 3, request(0));
    let ended = FromCoordinator::MemberEnded { member: MAIN };
    assert_eq!(
        effects(|effects| it.receive(ended, effects)),
        [
            MemberEffect::Close { member: MAIN },
            MemberEffect::Interrupt { ticket: Ticket(1) },
            MemberEffect::Interrupt { ticket: Ticket(2) },
            MemberEffect::ToCoordinator(ToCoordinator::Closed { member: MAIN, settled: vec![] }),
        ]
    );
    assert_eq!(ends(&mut it, 2), []);
    assert_eq!(ends(&mut it, 1), [rest(2)]);
}

#[test]
fn a_rest_without_a_task_in_it_is_told_and_followed_by_the_next() {
    let mut it = runner(class());
    arrives(&mut it, 1, request(0));
    ends(&mut it, 1);
    let rested = |it: &mut Member, rest| effects(|effects| it.rested(rest, effects));
    assert_eq!(rested(&mut it, 1), [], "a task came in between");
    assert_eq!(rested(&mut it, 2), [MemberEffect::ToCoordinator(ToCoordinator::Idle), rest(3)]);
    arrives(&mut it, 2, request(0));
    assert_eq!(rested(&mut it, 3), [], "it is not idle");
}

#[test]
fn a_runner_that_is_told_to_end_returns_what_waits_and_comes_and_ends_what_runs() {
    let mut it = runner(class());
    arrives(&mut it, 1, request(0));
    waits(&mut it, 1);
    arrives(&mut it, 2, request(0));
    arrives(&mut it, 3, request(0));
    assert_eq!(told_to_end(&mut it), [returned(3)]);
    let frame = ToCoordinator::Release { held: handle(9), settled: vec![(MAIN, 1)] };
    assert_eq!(
        arrives_with(&mut it, 4, request(0), vec![carried(9)]),
        [returned(4), MemberEffect::ToCoordinator(frame)]
    );
    assert_eq!(ends(&mut it, 2), [ran(2)]);
    goes_on(&mut it, 1);
    assert_eq!(ends(&mut it, 1), [ran(1), MemberEffect::End]);
    assert_eq!(arrives(&mut it, 5, request(0)), [returned(5)]);
    assert_eq!(told_to_end(&mut runner(class())), [MemberEffect::End], "it has nothing to end");
}

#[test]
fn a_runner_that_gives_up_a_task_returns_what_waits() {
    let mut it = runner(class());
    arrives(&mut it, 1, request(0));
    arrives(&mut it, 2, request(0));
    cancel(&mut it, 1);
    assert_eq!(effects(|effects| it.abandon(effects)), [returned(2)]);
    assert_eq!(arrives(&mut it, 3, request(0)), [returned(3)]);
}
