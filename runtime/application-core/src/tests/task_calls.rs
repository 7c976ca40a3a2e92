//! Tasks at their caller: windows, the order of sending, retries, cancellation, bounds.

use bytes::Bytes;
use cohabit_types::{JobId, RankId, Span};

use super::kit::{MAIN, ROOT, actor, class, effects, handle, inline, member, task};
use crate::{
    CallError, CallNumber, CallValue, FromCoordinator, MAX_ARGUMENTS, MAX_TASK_BYTES, MAX_TASKS, Member,
    MemberEffect, OnTaskError, RequestNumber, TaskSpec, Ticket, ToCallee, ToCaller, ToCoordinator,
};

const RUNNER: RankId = member(3);
const OTHER: RankId = member(4);

fn main() -> Member {
    Member::new(MAIN, ROOT)
}

fn call(it: &mut Member, spec: &TaskSpec) -> Vec<MemberEffect> {
    effects(|effects| _ = it.run_task(spec.clone(), effects).unwrap())
}

fn joins(it: &mut Member, runner: RankId) -> Vec<MemberEffect> {
    effects(|effects| it.receive(FromCoordinator::RunnerJoined { class: class(), runner }, effects))
}

fn leaves(it: &mut Member, runner: RankId) -> Vec<MemberEffect> {
    effects(|effects| it.receive(FromCoordinator::RunnerLeaves { runner }, effects))
}

fn dies(it: &mut Member, runner: RankId) -> Vec<MemberEffect> {
    effects(|effects| it.receive(FromCoordinator::MemberEnded { member: runner }, effects))
}

fn says(it: &mut Member, runner: RankId, frame: ToCaller) -> Vec<MemberEffect> {
    effects(|effects| it.receive_from_callee(runner, frame, effects))
}

fn value() -> Result<CallValue, CallError> {
    Ok(inline("value"))
}

fn ran(call: u64, result: Result<CallValue, CallError>, took: Span) -> ToCaller {
    ToCaller::Ran { call: CallNumber(call), result, carries: Vec::new(), took }
}

fn want(runners: u32) -> MemberEffect {
    MemberEffect::ToCoordinator(ToCoordinator::WantRunners { class: class(), runners })
}

/// Call number `call` goes to a runner.
fn run(to: RankId, call: u64) -> MemberEffect {
    let TaskSpec { function, arguments, needs, .. } = task();
    let task = crate::TaskRequest { function, depth: 0, arguments, needs, resume: None, store_as: None };
    MemberEffect::ToCallee { to, frame: ToCallee::Run { call: CallNumber(call), task, carries: Vec::new() } }
}

fn recall(to: RankId, call: u64) -> MemberEffect {
    MemberEffect::ToCallee { to, frame: ToCallee::Recall { call: CallNumber(call) } }
}

fn returned(call: u64) -> ToCaller {
    ToCaller::Returned { call: CallNumber(call) }
}

fn finish(call: u64, result: Result<CallValue, CallError>) -> MemberEffect {
    MemberEffect::Finish { call: CallNumber(call), result, carries: Vec::new() }
}

fn closed(runner: RankId) -> [MemberEffect; 2] {
    let frame = ToCoordinator::Closed { member: runner, settled: Vec::new() };
    [MemberEffect::Close { member: runner }, MemberEffect::ToCoordinator(frame)]
}

/// The numbers of the calls that go to a runner.
fn sent(effects: &[MemberEffect]) -> Vec<(RankId, u64)> {
    let sent = effects.iter().filter_map(|effect| {
        let MemberEffect::ToCallee { to, frame: ToCallee::Run { call, .. } } = effect else { return None };
        Some((*to, call.0))
    });
    sent.collect()
}

fn lost(ends: u32) -> CallError {
    let text = "whether it ran is unknown; if it is safe to run again, allow it more retries, and more memory if \
                its processes are ended for want of it";
    CallError::Lost { ends, text: text.to_owned() }
}

#[test]
fn a_task_waits_for_a_runner_and_ends_with_its_answer() {
    let mut main = main();
    assert_eq!(call(&mut main, &task()), [want(1)]);
    assert_eq!(joins(&mut main, RUNNER), [run(RUNNER, 1)]);
    assert!(!main.is_idle());
    assert_eq!(says(&mut main, OTHER, ran(1, value(), Span::ZERO)), [], "of another process");
    assert_eq!(says(&mut main, RUNNER, ran(1, value(), Span::ZERO)), [finish(1, value())]);
    assert_eq!(says(&mut main, RUNNER, ran(1, value(), Span::ZERO)), [], "it has ended");
    assert!(main.is_idle());
    assert_eq!(call(&mut main, &task()), [run(RUNNER, 2)], "without a word to the coordinator");
}

#[test]
fn two_tasks_of_an_unknown_function_are_in_flight_at_each_runner() {
    let mut main = main();
    joins(&mut main, OTHER);
    joins(&mut main, RUNNER);
    let sent: Vec<_> = (0..5).flat_map(|_| sent(&call(&mut main, &task()))).collect();
    assert_eq!(sent, [(RUNNER, 1), (OTHER, 2), (RUNNER, 3), (OTHER, 4)]);
}

#[test]
fn tasks_of_less_than_a_millisecond_together_are_in_flight_and_64_at_most() {
    for (took, in_flight) in [(Span::from_micros(100), 10), (Span::from_micros(300), 4), (Span::ZERO, 64)] {
        let mut main = main();
        joins(&mut main, RUNNER);
        call(&mut main, &task());
        says(&mut main, RUNNER, ran(1, value(), took));
        let sent: Vec<_> = (0..100).flat_map(|_| sent(&call(&mut main, &task()))).collect();
        assert_eq!(sent.len(), in_flight, "{took}");
    }
}

#[test]
fn an_estimate_follows_the_last_observations() {
    let mut estimates = crate::task_estimates::TaskEstimates::new();
    assert_eq!(estimates.window(7), Span::from_millis(1), "unknown");
    assert_eq!(estimates.weight(7), Span::from_millis(100), "unknown");
    estimates.observe(7, Span::from_micros(800));
    assert_eq!(estimates.window(7), Span::from_micros(800));
    estimates.observe(7, Span::from_micros(1_600));
    assert_eq!((estimates.window(7), estimates.weight(7)), (Span::from_micros(900), Span::from_micros(900)));
    estimates.observe(7, Span::from_secs(10));
    assert_eq!(estimates.window(7), Span::from_micros(1_250_787));
    assert_eq!(estimates.weight(7), Span::from_millis(100));
}

#[test]
fn the_runner_with_the_least_work_gets_the_next_task() {
    let mut main = main();
    joins(&mut main, OTHER);
    joins(&mut main, RUNNER);
    let long = TaskSpec { function: 9, ..task() };
    call(&mut main, &task());
    call(&mut main, &long);
    says(&mut main, RUNNER, ran(1, value(), Span::from_micros(200)));
    says(&mut main, OTHER, ran(2, value(), Span::from_micros(500)));
    let specs = [long, task(), task(), task(), task()];
    let sent: Vec<_> = specs.iter().flat_map(|spec| sent(&call(&mut main, spec))).collect();
    assert_eq!(sent, [(RUNNER, 3), (OTHER, 4), (OTHER, 5), (OTHER, 6), (RUNNER, 7)]);
}

#[test]
fn a_parked_task_takes_no_room_in_the_window_and_keeps_no_runner_busy() {
    let mut main = main();
    joins(&mut main, RUNNER);
    (0..3).for_each(|_| _ = call(&mut main, &task()));
    let parked = ToCaller::Parked { call: CallNumber(1) };
    assert_eq!(says(&mut main, RUNNER, parked), [run(RUNNER, 3)]);
    let ended = says(&mut main, RUNNER, ran(1, value(), Span::ZERO));
    assert_eq!(ended, [finish(1, value()), want(1)], "two tasks of no time");
    call(&mut main, &task());
    assert_eq!(says(&mut main, RUNNER, ran(2, value(), Span::ZERO)), [finish(2, value()), run(RUNNER, 4)]);
}

#[test]
fn a_dead_runner_costs_a_retry_and_its_tasks_go_first() {
    let mut main = main();
    let retried = TaskSpec { retries: 1, ..task() };
    joins(&mut main, RUNNER);
    (0..3).for_each(|_| _ = call(&mut main, &retried));
    let [close, closed_frame] = closed(RUNNER);
    assert_eq!(dies(&mut main, RUNNER), [close, closed_frame]);
    assert_eq!(joins(&mut main, OTHER), [run(OTHER, 1), run(OTHER, 2)], "3 was never sent");
    let [close, closed_frame] = closed(OTHER);
    assert_eq!(
        dies(&mut main, OTHER),
        [close, finish(1, Err(lost(2))), finish(2, Err(lost(2))), want(1), closed_frame]
    );
    assert_eq!(joins(&mut main, member(5)), [run(member(5), 3)]);
}

#[test]
fn a_task_without_retries_is_sent_once() {
    let mut main = main();
    joins(&mut main, RUNNER);
    call(&mut main, &task());
    let [close, closed_frame] = closed(RUNNER);
    let died = dies(&mut main, RUNNER);
    assert_eq!(died, [close, finish(1, Err(lost(1))), want(0), closed_frame]);
    assert_eq!(dies(&mut main, OTHER), closed(OTHER), "a runner of nobody");
    assert_eq!(main.task_calls.classes.len(), 0, "nothing is remembered");
}

#[test]
fn a_returned_task_costs_no_retry_and_goes_to_another_runner() {
    let mut main = main();
    joins(&mut main, RUNNER);
    (0..3).for_each(|_| _ = call(&mut main, &task()));
    assert_eq!(says(&mut main, RUNNER, returned(2)), [], "the runner gets no more");
    assert_eq!(joins(&mut main, OTHER), [run(OTHER, 2), run(OTHER, 3)]);
    assert_eq!(says(&mut main, RUNNER, returned(2)), [], "it is not there any more");
    assert_eq!(says(&mut main, RUNNER, ran(1, value(), Span::ZERO)), [finish(1, value()), want(1)]);
}

#[test]
fn what_a_runner_that_ended_in_order_did_not_answer_is_as_returned() {
    let mut main = main();
    joins(&mut main, RUNNER);
    (0..3).for_each(|_| _ = call(&mut main, &task()));
    effects(|it| main.cancel_task(CallNumber(2), it));
    let ended = FromCoordinator::RunnerEnded { runner: RUNNER };
    assert_eq!(effects(|it| main.receive(ended, it)), [finish(2, Err(CallError::Cancelled)),],);
    assert_eq!(dies(&mut main, RUNNER), closed(RUNNER));
    assert_eq!(joins(&mut main, OTHER), [run(OTHER, 1), run(OTHER, 3)]);
}

#[test]
fn errors_are_tried_again_if_the_task_says_so_and_retries_are_left() {
    let failed = || Err(CallError::Failed("no such file".to_owned()));
    let panicked = || Err(CallError::Panicked("ouch".to_owned()));
    let mut main = main();
    joins(&mut main, RUNNER);
    call(&mut main, &TaskSpec { retries: 1, ..task() });
    assert_eq!(says(&mut main, RUNNER, ran(1, failed(), Span::ZERO)), [finish(1, failed())]);
    call(&mut main, &TaskSpec { retries: 1, on_error: OnTaskError::Retry, ..task() });
    assert_eq!(says(&mut main, RUNNER, ran(2, failed(), Span::ZERO)), [run(RUNNER, 2)]);
    assert_eq!(says(&mut main, RUNNER, ran(2, panicked(), Span::ZERO)), [finish(2, panicked())]);
}

#[test]
fn a_cancelled_task_ends_at_once_or_with_the_answer_and_is_never_retried() {
    let mut main = main();
    let retried = TaskSpec { retries: 3, on_error: OnTaskError::Retry, ..task() };
    joins(&mut main, RUNNER);
    (0..6).for_each(|_| _ = call(&mut main, &retried));
    let cancel = |it: &mut Member, call| effects(|effects| it.cancel_task(CallNumber(call), effects));
    let asked =
        |call| MemberEffect::ToCallee { to: RUNNER, frame: ToCallee::Cancel { call: CallNumber(call) } };
    let cancelled = || Err(CallError::Cancelled);
    assert_eq!(cancel(&mut main, 6), [finish(6, cancelled())], "not sent");
    assert_eq!(cancel(&mut main, 1), [asked(1)]);
    assert_eq!(cancel(&mut main, 1), [], "only once");
    assert_eq!(
        says(&mut main, RUNNER, ran(1, cancelled(), Span::ZERO)),
        [finish(1, cancelled()), run(RUNNER, 3)]
    );
    cancel(&mut main, 2);
    let failed = Err(CallError::Failed("interrupted".to_owned()));
    assert_eq!(says(&mut main, RUNNER, ran(2, failed.clone(), Span::ZERO))[0], finish(2, failed));
    cancel(&mut main, 3);
    cancel(&mut main, 4);
    let returned = ToCaller::Returned { call: CallNumber(3) };
    assert_eq!(says(&mut main, RUNNER, returned), [finish(3, cancelled())]);
    assert_eq!(dies(&mut main, RUNNER)[1], finish(4, cancelled()));
}

#[test]
fn without_any_runner_only_tasks_that_none_has_fail() {
    let mut main = main();
    joins(&mut main, RUNNER);
    (0..4).for_each(|_| _ = call(&mut main, &task()));
    leaves(&mut main, RUNNER);
    let why = "the account has no quota".to_owned();
    let no_runner = FromCoordinator::NoRunner { class: class(), why: why.clone() };
    assert_eq!(
        effects(|it| main.receive(no_runner, it)),
        [finish(3, Err(CallError::NoRunner(why.clone()))), finish(4, Err(CallError::NoRunner(why))), want(0)]
    );
    assert_eq!(says(&mut main, RUNNER, ran(1, value(), Span::ZERO)), [finish(1, value())]);
    assert_eq!(call(&mut main, &task()), [want(1)]);
}

#[test]
fn a_runner_without_tasks_gets_one_that_waits_behind_another() {
    let mut main = main();
    (0..2).for_each(|_| _ = call(&mut main, &task()));
    assert_eq!(joins(&mut main, RUNNER), [run(RUNNER, 1), run(RUNNER, 2)]);
    assert_eq!(joins(&mut main, OTHER), [recall(RUNNER, 2)], "the one that was sent last");
    assert_eq!(says(&mut main, RUNNER, returned(2)), [run(OTHER, 2)]);
    assert_eq!(says(&mut main, RUNNER, ran(1, value(), Span::from_secs(1))), [finish(1, value())]);
}

#[test]
fn a_task_that_has_started_stays_where_it_is() {
    let mut main = main();
    (0..2).for_each(|_| _ = call(&mut main, &task()));
    joins(&mut main, RUNNER);
    joins(&mut main, OTHER);
    let kept = |call| ToCaller::Kept { call: CallNumber(call) };
    assert_eq!(says(&mut main, RUNNER, kept(2)), [recall(RUNNER, 1)], "then the other one has not started");
    assert_eq!(says(&mut main, RUNNER, kept(1)), []);
    assert_eq!(says(&mut main, RUNNER, ran(2, value(), Span::from_secs(1)))[0], finish(2, value()));
    assert_eq!(says(&mut main, RUNNER, ran(1, value(), Span::from_secs(1)))[0], finish(1, value()));
}

/// Both runners may be busy with the tasks of others.
#[test]
fn a_task_that_has_moved_stays_until_a_further_runner_joins() {
    let third = JobId::new(9).attempt(1).rank(0);
    let mut main = main();
    call(&mut main, &task());
    joins(&mut main, RUNNER);
    assert_eq!(joins(&mut main, OTHER), [recall(RUNNER, 1)]);
    assert_eq!(says(&mut main, RUNNER, returned(1)), [run(OTHER, 1)]);
    assert_eq!(joins(&mut main, third), [recall(OTHER, 1)]);
    assert_eq!(says(&mut main, OTHER, returned(1)), [run(third, 1)]);
    assert_eq!(says(&mut main, third, ran(1, value(), Span::from_secs(1)))[0], finish(1, value()));
}

#[test]
fn short_tasks_are_not_recalled() {
    let mut main = main();
    call(&mut main, &task());
    joins(&mut main, RUNNER);
    says(&mut main, RUNNER, ran(1, value(), Span::from_micros(20)));
    assert_eq!(call(&mut main, &task()), [run(RUNNER, 2)]);
    assert_eq!(joins(&mut main, OTHER), []);
}

#[test]
fn wants_grow_by_powers_of_two_and_shrink_at_a_quarter() {
    let mut main = main();
    let wants: Vec<_> = (0..9).map(|_| call(&mut main, &task())).collect();
    let expected = [Some(1), Some(2), Some(4), None, Some(8), None, None, None, Some(16)];
    assert_eq!(wants, expected.map(|it| it.map(want).into_iter().collect::<Vec<_>>()));
    joins(&mut main, RUNNER);
    assert_eq!(
        says(&mut main, RUNNER, ran(1, value(), Span::from_millis(40))),
        [finish(1, value()), run(RUNNER, 3), want(4)],
        "8 tasks of 40 ms"
    );
    assert_eq!(
        says(&mut main, RUNNER, ran(2, value(), Span::from_millis(40))),
        [finish(2, value()), run(RUNNER, 4)],
        "7 of 40 ms keep 3 busy"
    );
    assert_eq!(
        leaves(&mut main, RUNNER),
        [want(2)],
        "the coordinator has forgotten: exactly what 5 tasks need that are not with the leaving runner"
    );
}

#[test]
fn a_task_that_waits_for_calls_of_its_own_wants_no_runner() {
    let mut main = main();
    call(&mut main, &task());
    joins(&mut main, RUNNER);
    says(&mut main, RUNNER, ToCaller::Parked { call: CallNumber(1) });
    joins(&mut main, OTHER);
    assert_eq!(leaves(&mut main, OTHER), [want(0)], "or idle runners came and went as long as it waits");
    assert_eq!(dies(&mut main, RUNNER)[1], finish(1, Err(lost(1))));
}

#[test]
fn one_task_after_another_says_nothing_and_the_end_of_the_runner_forgets_the_class() {
    let mut main = main();
    assert_eq!(call(&mut main, &task()), [want(1)]);
    joins(&mut main, RUNNER);
    for number in 1..10 {
        assert_eq!(
            says(&mut main, RUNNER, ran(number, value(), Span::from_secs(1))),
            [finish(number, value())]
        );
        assert_eq!(call(&mut main, &task()), [run(RUNNER, number + 1)]);
    }
    says(&mut main, RUNNER, ran(10, value(), Span::from_secs(1)));
    assert_eq!(leaves(&mut main, RUNNER), [want(0)], "in case an earlier word is on its way");
    assert_eq!(dies(&mut main, RUNNER), closed(RUNNER));
    assert_eq!(main.task_calls.classes.len(), 0);
}

#[test]
fn bounds_hold_for_each_caller_and_not_for_the_process() {
    let mut main = main();
    let add = |it: &mut Member, caller, bytes| {
        let spec = TaskSpec { caller, arguments: Bytes::from(vec![0; bytes]), ..task() };
        it.run_task(spec, &mut Vec::new())
    };
    for _ in 0..MAX_TASKS {
        add(&mut main, None, 0).unwrap();
    }
    assert_eq!(add(&mut main, None, 0), Err(CallError::Full));
    let (child, other) = (Some(Ticket(1)), Some(Ticket(2)));
    for _ in 0..4 {
        add(&mut main, child, MAX_ARGUMENTS).unwrap();
    }
    assert_eq!(MAX_TASK_BYTES, 4 * MAX_ARGUMENTS);
    assert_eq!(add(&mut main, child, 1), Err(CallError::Full));
    assert!(main.has_task_room(child, 0) && main.has_task_room(other, 1) && !main.has_task_room(None, 0));
    effects(|effects| main.cancel_task(CallNumber(7), effects));
    assert!(main.has_task_room(None, 0));
    let text = "arguments of 16777217 bytes; a call takes at most 16777216: pass less at a time".to_owned();
    assert_eq!(add(&mut main, other, MAX_ARGUMENTS + 1), Err(CallError::Refused(text)));
}

#[test]
fn handles_in_arguments_are_lent_before_each_sending_and_kept_until_the_task_ends() {
    let mut main = main();
    let found = FromCoordinator::Found { request: RequestNumber(1), actor: Some(actor(8)) };
    let lend = |to| MemberEffect::ToCoordinator(ToCoordinator::Lend { held: handle(8), to });
    let release = || {
        let frame = ToCoordinator::Release { held: handle(8), settled: vec![(ROOT, 1)] };
        MemberEffect::ToCoordinator(frame)
    };
    let spec = TaskSpec { retries: 1, carries: vec![handle(8)], ..task() };
    let unknown = "this process holds no actor 8".to_owned();
    assert_eq!(main.run_task(spec.clone(), &mut Vec::new()), Err(CallError::Refused(unknown)));
    effects(|it| main.receive(found, it));
    joins(&mut main, OTHER);
    joins(&mut main, RUNNER);
    let mut sent = call(&mut main, &spec);
    assert_eq!(sent.remove(0), lend(RUNNER));
    assert_eq!(effects(|it| main.release(handle(8), it)), [], "the task holds it");
    assert_eq!(dies(&mut main, RUNNER)[1], lend(OTHER));
    assert_eq!(says(&mut main, OTHER, ran(1, value(), Span::ZERO)), [finish(1, value()), release()]);
    assert!(main.is_idle());
}
