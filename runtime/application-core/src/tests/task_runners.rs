//! Runners of tasks at the coordinator: growth, idleness, failures, the ceiling; the end of processes.

use cohabit_types::{JobId, RankId, Share};

use super::kit::{MAIN, ROOT, actor, class, effects, gpu_class, handle, member, root_node, spec};
use crate::{
    Coordinator, CoordinatorEffect, FromCoordinator, GangSpec, IncarnationNumber, RequestNumber,
    RunnerReport, RunnerState, TaskClass, TaskRunnerNumber, ToCoordinator,
};

const SECOND: RankId = member(9);

/// A main and another one are connected.
pub(super) fn application(ceiling: Option<Share>) -> Coordinator {
    let mut it = Coordinator::new(ROOT, root_node(), ceiling, None);
    for main in [MAIN, SECOND] {
        effects(|effects| {
            it.main(main.job(), effects);
            it.connected(main, "n0", effects);
        });
    }
    it
}

/// The process of a runner: that of job 100 and its number.
pub(super) const fn process(runner: u64) -> RankId {
    member(100 + runner)
}

pub(super) fn received(it: &mut Coordinator, from: RankId, frame: ToCoordinator) -> Vec<CoordinatorEffect> {
    effects(|effects| it.received(from, frame, effects))
}

pub(super) fn wants(
    it: &mut Coordinator,
    from: RankId,
    class: TaskClass,
    runners: u32,
) -> Vec<CoordinatorEffect> {
    received(it, from, ToCoordinator::WantRunners { class, runners })
}

pub(super) fn submitted(it: &mut Coordinator, runner: u64) -> Vec<CoordinatorEffect> {
    let job = process(runner).job();
    effects(|effects| it.task_runner_submitted(TaskRunnerNumber(runner), Ok(job), effects))
}

pub(super) fn connects(it: &mut Coordinator, runner: u64) -> Vec<CoordinatorEffect> {
    effects(|effects| it.connected(process(runner), "n0", effects))
}

pub(super) fn report(
    it: &mut Coordinator,
    job: JobId,
    attempts: u32,
    state: RunnerState,
) -> Vec<CoordinatorEffect> {
    let report = RunnerReport { ended_attempts: attempts, state };
    effects(|effects| it.report(job, report, effects))
}

pub(super) fn ends(it: &mut Coordinator, runner: u64, code: i32) -> Vec<CoordinatorEffect> {
    let text = format!("its process ended with {code}");
    report(it, process(runner).job(), 1, RunnerState::Ended { code, text })
}

/// Runners up to this number are submitted and connect.
pub(super) fn live(it: &mut Coordinator, runners: std::ops::RangeInclusive<u64>) {
    for runner in runners {
        submitted(it, runner);
        connects(it, runner);
    }
}

pub(super) fn send(to: RankId, frame: FromCoordinator) -> CoordinatorEffect {
    CoordinatorEffect::Send { to, frame }
}

pub(super) fn submit(runner: u64, class: TaskClass) -> CoordinatorEffect {
    CoordinatorEffect::SubmitTaskRunner { runner: TaskRunnerNumber(runner), class }
}

pub(super) fn cancel(runner: u64) -> CoordinatorEffect {
    CoordinatorEffect::CancelRunner { job: process(runner).job() }
}

fn joined(to: RankId, runner: u64) -> CoordinatorEffect {
    send(to, FromCoordinator::RunnerJoined { class: class(), runner: process(runner) })
}

pub(super) fn leaves(to: RankId, runner: u64) -> CoordinatorEffect {
    send(to, FromCoordinator::RunnerLeaves { runner: process(runner) })
}

fn serve(runner: u64) -> CoordinatorEffect {
    send(process(runner), FromCoordinator::ServeTasks { class: class() })
}

pub(super) fn end(runner: u64) -> CoordinatorEffect {
    send(process(runner), FromCoordinator::End)
}

fn no_runner(to: RankId, class: TaskClass, why: &str) -> CoordinatorEffect {
    send(to, FromCoordinator::NoRunner { class, why: why.to_owned() })
}

#[test]
fn a_runner_is_submitted_for_who_wants_one_and_serves_when_it_connects() {
    let mut it = application(None);
    assert_eq!(wants(&mut it, MAIN, class(), 1), [submit(1, class())]);
    assert_eq!(submitted(&mut it, 1), []);
    assert_eq!(connects(&mut it, 1), [serve(1), joined(MAIN, 1)]);
    assert_eq!(connects(&mut it, 1), [], "again");
    assert_eq!(wants(&mut it, SECOND, class(), 1), [joined(SECOND, 1), submit(2, class())]);
    assert!(!it.is_idle());
}

#[test]
fn a_runner_may_connect_before_the_answer_to_its_submission() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    assert_eq!(connects(&mut it, 1), []);
    assert_eq!(submitted(&mut it, 1), [serve(1), joined(MAIN, 1)]);
}

#[test]
fn the_number_of_runners_doubles() {
    let mut it = application(None);
    assert_eq!(wants(&mut it, MAIN, class(), 7), [submit(1, class())]);
    submitted(&mut it, 1);
    assert_eq!(connects(&mut it, 1), [serve(1), joined(MAIN, 1), submit(2, class())]);
    submitted(&mut it, 2);
    assert_eq!(connects(&mut it, 2), [serve(2), joined(MAIN, 2), submit(3, class()), submit(4, class())]);
    submitted(&mut it, 3);
    assert_eq!(
        connects(&mut it, 3),
        [serve(3), joined(MAIN, 3), submit(5, class()), submit(6, class())],
        "as many more as live"
    );
    submitted(&mut it, 4);
    assert_eq!(connects(&mut it, 4), [serve(4), joined(MAIN, 4), submit(7, class())], "all that are wanted");
}

#[test]
fn runners_beyond_what_is_wanted_are_cancelled_before_they_serve() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 8);
    live(&mut it, 1..=2);
    submitted(&mut it, 3);
    let surplus = CoordinatorEffect::AwaitSurplus { class: class() };
    assert_eq!(wants(&mut it, MAIN, class(), 1), [surplus]);
    assert_eq!(wants(&mut it, MAIN, class(), 8), [], "what is wanted comes and goes");
    assert_eq!(wants(&mut it, MAIN, class(), 1), []);
    assert_eq!(effects(|effects| it.surplus_over(&class(), effects)), [cancel(3)]);
    assert_eq!(
        effects(|effects| it.task_runner_submitted(TaskRunnerNumber(4), Ok(process(4).job()), effects)),
        [cancel(4)],
        "as soon as it has a job"
    );
    assert_eq!(effects(|effects| it.connected(process(4), "n0", effects)), [], "it does not serve");
    assert_eq!(ends(&mut it, 3, 143), []);
}

#[test]
fn an_idle_runner_ends_and_all_say_anew_what_they_want() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 4);
    live(&mut it, 1..=2);
    wants(&mut it, SECOND, class(), 1);
    submitted(&mut it, 3);
    assert_eq!(
        received(&mut it, process(2), ToCoordinator::Idle),
        [leaves(MAIN, 2), leaves(SECOND, 2), end(2), cancel(3)]
    );
    assert_eq!(received(&mut it, process(2), ToCoordinator::Idle), [], "it was told");
    submitted(&mut it, 4);
    assert_eq!(wants(&mut it, SECOND, class(), 2), [submit(5, class())], "it knows runner 1");
    let (member, runner) = (process(2), process(2));
    assert_eq!(
        ends(&mut it, 2, 0),
        [
            send(MAIN, FromCoordinator::RunnerEnded { runner }),
            send(SECOND, FromCoordinator::RunnerEnded { runner }),
            send(process(1), FromCoordinator::RunnerEnded { runner }),
            CoordinatorEffect::Close { member },
            send(MAIN, FromCoordinator::MemberEnded { member }),
            send(SECOND, FromCoordinator::MemberEnded { member }),
            send(process(1), FromCoordinator::MemberEnded { member }),
        ]
    );
}

#[test]
fn nothing_is_left_of_a_class_whose_runners_were_idle() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    live(&mut it, 1..=1);
    received(&mut it, process(1), ToCoordinator::Idle);
    assert!(!it.is_idle(), "its process has not ended");
    ends(&mut it, 1, 0);
    for main in [MAIN, SECOND] {
        received(&mut it, main, ToCoordinator::Closed { member: process(1), settled: vec![] });
    }
    assert!(it.is_idle());
    assert_eq!(wants(&mut it, MAIN, class(), 0), []);
    assert!(it.is_idle());
}

#[test]
fn a_runner_that_dies_is_replaced_as_long_as_it_is_wanted() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    live(&mut it, 1..=1);
    let told = ends(&mut it, 1, 137);
    assert_eq!(told[1], send(MAIN, FromCoordinator::MemberEnded { member: process(1) }));
    assert_eq!(told[3..], [submit(2, class())]);
    let mut main_dies = report(
        &mut it,
        MAIN.job(),
        1,
        RunnerState::Ended { code: 0, text: "its process ended with 0".to_owned() },
    );
    main_dies.retain(|effect| !matches!(effect, CoordinatorEffect::Send { .. }));
    assert_eq!(main_dies, [CoordinatorEffect::Close { member: MAIN }]);
    assert_eq!(submitted(&mut it, 2), [cancel(2)], "nobody wants it any more");
}

#[test]
fn the_next_attempt_of_a_runner_serves_when_the_one_before_has_ended() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    live(&mut it, 1..=1);
    let next = process(1).job().attempt(2).rank(0);
    assert_eq!(effects(|effects| it.connected(next, "n0", effects)), []);
    let told = report(&mut it, next.job(), 1, RunnerState::Live);
    let joined = FromCoordinator::RunnerJoined { class: class(), runner: next };
    assert_eq!(
        told[told.len() - 2..],
        [send(next, FromCoordinator::ServeTasks { class: class() }), send(MAIN, joined)]
    );
}

#[test]
fn a_refused_submission_fails_the_tasks_of_all_and_the_next_want_starts_afresh() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    wants(&mut it, SECOND, class(), 1);
    let refused = |it: &mut Coordinator, runner| {
        let result = Err("the account has no quota".to_owned());
        effects(|effects| it.task_runner_submitted(TaskRunnerNumber(runner), result, effects))
    };
    let why = "the account has no quota";
    assert_eq!(refused(&mut it, 1), [no_runner(MAIN, class(), why), no_runner(SECOND, class(), why)]);
    assert!(it.is_idle());
    assert_eq!(wants(&mut it, MAIN, class(), 2), [submit(2, class())]);
    live(&mut it, 2..=2);
    assert_eq!(refused(&mut it, 3), [], "tasks run on the runner that lives");
    assert_eq!(wants(&mut it, MAIN, class(), 3), [submit(4, class())], "it is tried again");
}

#[test]
fn three_runners_in_a_row_that_end_before_they_connect_give_no_runner() {
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    for runner in 1..=2 {
        submitted(&mut it, runner);
        assert_eq!(ends(&mut it, runner, 127), [submit(runner + 1, class())]);
    }
    submitted(&mut it, 3);
    let why = "3 processes in a row ended before they connected; the last: its process ended with 127";
    assert_eq!(ends(&mut it, 3, 127), [no_runner(MAIN, class(), why)]);
    assert!(it.is_idle());
    assert_eq!(wants(&mut it, MAIN, class(), 1), [submit(4, class())]);
}

#[test]
fn a_class_above_the_ceiling_has_no_runner() {
    let mut it = application(Some(Share(1_000)));
    let why = "a task needs 1.5 GPUs and the application may use 1: raise max_gpus of main";
    assert_eq!(wants(&mut it, MAIN, gpu_class(1_500), 3), [no_runner(MAIN, gpu_class(1_500), why)]);
    assert!(it.is_idle());
}

#[test]
fn actors_and_runners_share_the_ceiling_in_order() {
    let mut it = application(Some(Share(1_000)));
    let half = GangSpec { gpus: Share(500), ..spec() };
    let create = |it: &mut Coordinator, request| {
        let request = RequestNumber(request);
        let mut effects =
            received(it, MAIN, ToCoordinator::Create { request, gang: half.clone(), carries: Vec::new() });
        effects.remove(0);
        effects
    };
    assert_eq!(wants(&mut it, MAIN, gpu_class(600), 1), [submit(1, gpu_class(600))]);
    assert_eq!(create(&mut it, 1), [], "waits for the runner");
    assert_eq!(wants(&mut it, MAIN, gpu_class(300), 1), [], "waits behind the actor");
    assert_eq!(wants(&mut it, MAIN, class(), 1), [submit(3, class())], "needs no GPU");
    let why = "needs 0.5 GPUs; 0.6 of max_gpus 1 are in use, and 0 others wait before it".to_owned();
    let state = crate::ActorState::Pending { why };
    assert_eq!(
        received(&mut it, MAIN, ToCoordinator::Watch { actor: actor(1) }),
        [send(MAIN, FromCoordinator::State { actor: actor(1), state })]
    );
    submitted(&mut it, 1);
    assert_eq!(
        wants(&mut it, MAIN, gpu_class(600), 0),
        [cancel(1)],
        "its GPUs are free when its job has ended"
    );
    let admitted = ends(&mut it, 1, 143);
    let is_actor =
        matches!(admitted[1], CoordinatorEffect::Submit { first, .. } if first == crate::ActorId(1));
    assert!(is_actor, "{admitted:?}");
    assert_eq!(admitted[2..], [submit(2, gpu_class(300))]);
    assert_eq!(create(&mut it, 2), [], "0.8 are in use");
    assert_eq!(
        effects(|effects| {
            it.task_runner_submitted(TaskRunnerNumber(2), Err("no such GPU".to_owned()), effects);
        })[0],
        no_runner(MAIN, gpu_class(300), "no such GPU")
    );
}

#[test]
fn a_process_that_does_not_end_when_told_is_cancelled_after_some_time() {
    let runner = process(1);
    let mut it = application(None);
    let request = RequestNumber(1);
    received(&mut it, MAIN, ToCoordinator::Create { request, gang: spec(), carries: Vec::new() });
    effects(|effects| {
        it.submitted(actor(1), Ok(runner.job()), effects);
        it.connected(runner, "n0", effects);
    });
    let patience_over = |it: &mut Coordinator| effects(|effects| it.patience_over(runner.job(), effects));
    assert_eq!(patience_over(&mut it), [], "it was not told to end");
    let failed = ToCoordinator::ConstructorFailed { text: "no such file".to_owned() };
    assert_eq!(
        received(&mut it, runner, failed),
        [send(runner, FromCoordinator::End), CoordinatorEffect::AwaitEnd { job: runner.job() }]
    );
    assert_eq!(patience_over(&mut it), [CoordinatorEffect::CancelRunner { job: runner.job() }]);
    assert_eq!(patience_over(&mut it), []);
}

#[test]
fn a_process_that_was_told_to_end_is_not_started_again() {
    let runner = process(1);
    let mut it = application(None);
    let request = RequestNumber(1);
    received(&mut it, MAIN, ToCoordinator::Create { request, gang: spec(), carries: Vec::new() });
    effects(|effects| {
        it.submitted(actor(1), Ok(runner.job()), effects);
        it.connected(runner, "n0", effects);
        it.received(runner, ToCoordinator::Constructed { incarnation: IncarnationNumber(1) }, effects);
        it.received(MAIN, ToCoordinator::Release { held: handle(1), settled: vec![(ROOT, 1)] }, effects);
    });
    let waiting = RunnerState::Waiting { why: "to be tried again".to_owned(), shortage: None };
    assert_eq!(
        report(&mut it, runner.job(), 1, waiting)[0],
        CoordinatorEffect::CancelRunner { job: runner.job() }
    );
    let mut it = application(None);
    wants(&mut it, MAIN, class(), 1);
    live(&mut it, 1..=1);
    received(&mut it, runner, ToCoordinator::Idle);
    assert_eq!(
        report(&mut it, runner.job(), 1, RunnerState::Live)[0],
        CoordinatorEffect::CancelRunner { job: runner.job() }
    );
}
