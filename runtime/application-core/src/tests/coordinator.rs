//! An application: names, the ceiling, restarts, holders, and the end.

use bytes::Bytes;
use cohabit_types::{JobId, RankId, Share};

use super::kit::{
    MAIN, ROOT, actor, actor_spec, carried, effects, forget, handle, member, named, root_node, spec,
};
use crate::{
    ActorEnd, ActorId, ActorSpec, ActorState, ClosingNumber, Construction, Coordinator, CoordinatorEffect,
    CreateError, FromCoordinator, GangSpec, IncarnationNumber, Lifetime, OnPanic, RequestNumber,
    RunnerReport, RunnerState, TaskClass, TaskRunnerNumber, ToCoordinator,
};

const RUNNER: RankId = member(3);

fn send(to: RankId, frame: FromCoordinator) -> CoordinatorEffect {
    CoordinatorEffect::Send { to, frame }
}

fn state(to: RankId, state: ActorState) -> CoordinatorEffect {
    send(to, FromCoordinator::State { actor: actor(1), state })
}

fn created(request: u64, result: Result<ActorId, CreateError>) -> CoordinatorEffect {
    send(MAIN, FromCoordinator::Created { request: RequestNumber(request), result })
}

fn submit(number: u64, spec: &GangSpec) -> CoordinatorEffect {
    CoordinatorEffect::Submit { first: actor(number), gang: spec.clone() }
}

fn construct(incarnation: u32) -> FromCoordinator {
    let ActorSpec { kind, concurrency, arguments, needs, .. } = actor_spec();
    let incarnation = IncarnationNumber(incarnation);
    FromCoordinator::Construct(Construction {
        actor: actor(1),
        kind,
        incarnation,
        concurrency,
        on_panic: OnPanic::Reconstruct,
        arguments,
        needs,
        carries: Vec::new(),
    })
}

fn create(it: &mut Coordinator, request: u64, gang: &GangSpec) -> Vec<CoordinatorEffect> {
    let (request, gang) = (RequestNumber(request), gang.clone());
    let frame = ToCoordinator::Create { request, gang, carries: Vec::new() };
    received(it, MAIN, frame)
}

fn received(it: &mut Coordinator, from: RankId, frame: ToCoordinator) -> Vec<CoordinatorEffect> {
    effects(|effects| it.received(from, frame, effects))
}

fn report(
    it: &mut Coordinator,
    job: JobId,
    ended_attempts: u32,
    state: RunnerState,
) -> Vec<CoordinatorEffect> {
    effects(|effects| it.report(job, RunnerReport { ended_attempts, state }, effects))
}

fn ended(code: i32) -> RunnerState {
    RunnerState::Ended { code, text: format!("its process ended with {code}") }
}

fn release(it: &mut Coordinator, of: u64) -> Vec<CoordinatorEffect> {
    received(it, MAIN, ToCoordinator::Release { held: handle(of), settled: vec![(ROOT, 1)] })
}

/// The process of an actor is told to end.
fn told_to_end() -> [CoordinatorEffect; 2] {
    [send(RUNNER, FromCoordinator::End), CoordinatorEffect::AwaitEnd { job: RUNNER.job() }]
}

/// A main is connected.
fn application(ceiling: Option<Share>) -> Coordinator {
    let mut it = Coordinator::new(ROOT, root_node(), ceiling, None);
    effects(|effects| {
        it.main(MAIN.job(), effects);
        it.connected(MAIN, "n0", effects);
    });
    it
}

/// Main watches its actor, which is ready in the first attempt of its runner.
fn with_ready_actor() -> Coordinator {
    let mut it = application(None);
    assert_eq!(create(&mut it, 1, &spec()), [created(1, Ok(actor(1))), submit(1, &spec())]);
    effects(|effects| it.submitted(actor(1), Ok(RUNNER.job()), effects));
    received(&mut it, MAIN, ToCoordinator::Watch { actor: actor(1) });
    report(&mut it, RUNNER.job(), 0, RunnerState::Live);
    assert_eq!(effects(|effects| it.connected(RUNNER, "n0", effects)), [send(RUNNER, construct(1))]);
    let incarnation = IncarnationNumber(1);
    let ready = ActorState::Ready { member: RUNNER, incarnation };
    assert_eq!(received(&mut it, RUNNER, ToCoordinator::Constructed { incarnation }), [state(MAIN, ready)]);
    it
}

#[test]
fn an_actor_is_restarted_once_the_head_says_that_its_process_has_ended() {
    let mut it = with_ready_actor();
    let next = RUNNER.job().attempt(2).rank(0);
    assert_eq!(effects(|effects| it.connected(next, "n0", effects)), [], "the first attempt may still run");
    assert_eq!(
        report(&mut it, RUNNER.job(), 1, RunnerState::Live),
        [
            state(MAIN, ActorState::Restarting),
            CoordinatorEffect::Close { member: RUNNER },
            send(MAIN, FromCoordinator::MemberEnded { member: RUNNER }),
            send(next, FromCoordinator::MemberEnded { member: RUNNER }),
            send(next, construct(2)),
        ]
    );
    assert!(!it.admits(RUNNER) && it.admits(next));
    let incarnation = IncarnationNumber(2);
    assert_eq!(
        received(&mut it, next, ToCoordinator::Constructed { incarnation }),
        [state(MAIN, ActorState::Ready { member: next, incarnation })]
    );
}

#[test]
fn a_panic_makes_the_next_incarnation_in_the_same_process() {
    let mut it = with_ready_actor();
    let incarnation = IncarnationNumber(2);
    assert_eq!(
        received(&mut it, RUNNER, ToCoordinator::Constructed { incarnation }),
        [state(MAIN, ActorState::Ready { member: RUNNER, incarnation })]
    );
    report(&mut it, RUNNER.job(), 1, RunnerState::Live);
    let next = RUNNER.job().attempt(2).rank(0);
    assert_eq!(effects(|effects| it.connected(next, "n0", effects)), [send(next, construct(3))]);
}

#[test]
fn an_actor_that_nobody_holds_ends_and_is_forgotten() {
    let mut it = with_ready_actor();
    assert_eq!(release(&mut it, 1), told_to_end());
    assert!(!it.is_idle());
    assert_eq!(
        report(&mut it, RUNNER.job(), 1, ended(143)),
        [
            CoordinatorEffect::Close { member: RUNNER },
            send(MAIN, FromCoordinator::MemberEnded { member: RUNNER }),
        ]
    );
    received(&mut it, MAIN, ToCoordinator::Closed { member: RUNNER, settled: vec![] });
    assert!(it.is_idle());
}

#[test]
fn a_stop_is_answered_when_the_process_has_ended_and_callers_see_its_cause_at_once() {
    let mut it = with_ready_actor();
    let (request, stopped) = (RequestNumber(2), ActorState::Ended(ActorEnd::Stopped));
    assert_eq!(
        received(&mut it, MAIN, ToCoordinator::Stop { request, actor: actor(1) }),
        [&[state(MAIN, stopped)], &told_to_end()[..]].concat()
    );
    assert_eq!(
        report(&mut it, RUNNER.job(), 1, ended(143)),
        [
            send(MAIN, FromCoordinator::Stopped { request }),
            CoordinatorEffect::Close { member: RUNNER },
            send(MAIN, FromCoordinator::MemberEnded { member: RUNNER }),
        ]
    );
    let request = RequestNumber(3);
    assert_eq!(
        received(&mut it, MAIN, ToCoordinator::Stop { request, actor: actor(1) }),
        [send(MAIN, FromCoordinator::Stopped { request })],
        "it has ended"
    );
}

#[test]
fn an_actor_whose_job_has_ended_is_given_up_and_remembered_while_held() {
    let mut it = with_ready_actor();
    let cause = ActorEnd::GivenUp("its process ended with 137".to_owned());
    let effects = report(&mut it, RUNNER.job(), 2, ended(137));
    assert_eq!(effects[0], state(MAIN, ActorState::Ended(cause.clone())));
    assert_eq!(
        received(&mut it, MAIN, ToCoordinator::Watch { actor: actor(1) }),
        [state(MAIN, ActorState::Ended(cause))]
    );
    received(&mut it, MAIN, ToCoordinator::Closed { member: RUNNER, settled: vec![] });
    release(&mut it, 1);
    assert!(it.is_idle());
}

#[test]
fn a_job_may_end_before_the_answer_to_its_submission_comes() {
    let mut it = application(None);
    create(&mut it, 1, &spec());
    assert_eq!(report(&mut it, RUNNER.job(), 1, ended(9)), []);
    effects(|effects| it.submitted(actor(1), Ok(RUNNER.job()), effects));
    release(&mut it, 1);
    assert!(it.is_idle());
}

#[test]
fn an_actor_that_is_dropped_while_it_is_submitted_is_cancelled_as_soon_as_it_has_a_job() {
    let mut it = application(None);
    create(&mut it, 1, &spec());
    assert_eq!(release(&mut it, 1), []);
    assert_eq!(
        effects(|effects| it.submitted(actor(1), Ok(RUNNER.job()), effects)),
        [CoordinatorEffect::CancelRunner { job: RUNNER.job() }]
    );
}

#[test]
fn actors_beyond_the_ceiling_wait_in_order_and_those_without_gpus_do_not() {
    let mut it = application(Some(Share(1_000)));
    let whole = GangSpec { gpus: Share(1_000), ..spec() };
    let half = GangSpec { gpus: Share(500), ..spec() };
    assert_eq!(create(&mut it, 1, &half), [created(1, Ok(actor(1))), submit(1, &half)]);
    assert_eq!(create(&mut it, 2, &whole), [created(2, Ok(actor(2)))]);
    assert_eq!(create(&mut it, 3, &half), [created(3, Ok(actor(3)))], "no overtaking");
    assert_eq!(create(&mut it, 4, &spec()), [created(4, Ok(actor(4))), submit(4, &spec())]);
    let why = "needs 1 GPUs; 0.5 of max_gpus 1 are in use, and 0 others wait before it".to_owned();
    assert_eq!(
        received(&mut it, MAIN, ToCoordinator::Watch { actor: actor(2) }),
        [send(MAIN, FromCoordinator::State { actor: actor(2), state: ActorState::Pending { why } })]
    );
    assert_eq!(release(&mut it, 2), [submit(3, &half)], "nobody waits before it any more");
    let above = GangSpec { gpus: Share(1_500), ..spec() };
    let error = CreateError::AboveCeiling { gpus: Share(1_500), max_gpus: Share(1_000) };
    assert_eq!(create(&mut it, 5, &above), [created(5, Err(error))]);
}

#[test]
fn a_name_belongs_to_one_live_actor_until_its_process_has_ended() {
    let mut it = application(None);
    let ada = named("ada", Lifetime::Held);
    create(&mut it, 1, &ada);
    effects(|effects| it.submitted(actor(1), Ok(RUNNER.job()), effects));
    let in_use = CreateError::NameInUse { name: "ada".to_owned() };
    assert_eq!(create(&mut it, 2, &ada), [created(2, Err(in_use.clone()))]);
    let find = |request| ToCoordinator::Find { request: RequestNumber(request), name: "ada".to_owned() };
    let found =
        |request, actor| send(MAIN, FromCoordinator::Found { request: RequestNumber(request), actor });
    assert_eq!(received(&mut it, MAIN, find(3)), [found(3, Some(actor(1)))]);
    received(&mut it, MAIN, ToCoordinator::Stop { request: RequestNumber(4), actor: actor(1) });
    assert_eq!(received(&mut it, MAIN, find(5)), [found(5, None)]);
    assert_eq!(create(&mut it, 6, &ada), [created(6, Err(in_use))], "its process still runs");
    report(&mut it, RUNNER.job(), 1, ended(143));
    assert_eq!(create(&mut it, 7, &ada), [created(7, Ok(actor(2))), submit(2, &ada)]);
}

#[test]
fn constructor_arguments_keep_what_they_carry_until_the_actor_ends() {
    let mut it = with_ready_actor();
    let request = RequestNumber(2);
    let create = ToCoordinator::Create { request, gang: spec(), carries: vec![vec![carried(1)]] };
    received(&mut it, MAIN, create);
    assert_eq!(release(&mut it, 1), []);
    effects(|effects| it.submitted(actor(2), Ok(JobId::new(4)), effects));
    assert_eq!(
        release(&mut it, 2),
        [&[CoordinatorEffect::CancelRunner { job: JobId::new(4) }], &told_to_end()[..]].concat()
    );
}

#[test]
fn the_application_exits_with_the_code_of_its_first_main_when_no_main_and_no_detached_actor_is_left() {
    let mut it = application(None);
    create(&mut it, 1, &named("ada", Lifetime::Detached));
    effects(|effects| it.submitted(actor(1), Ok(RUNNER.job()), effects));
    let second = member(9);
    effects(|effects| {
        it.main(second.job(), effects);
        it.connected(second, "n0", effects);
    });
    let ended_main = [
        CoordinatorEffect::Close { member: MAIN },
        send(second, FromCoordinator::MemberEnded { member: MAIN }),
    ];
    assert_eq!(report(&mut it, MAIN.job(), 1, ended(5)), ended_main);
    received(&mut it, second, ToCoordinator::Closed { member: MAIN, settled: vec![] });
    received(&mut it, second, ToCoordinator::Stop { request: RequestNumber(1), actor: actor(1) });
    let close = CoordinatorEffect::Close { member: second };
    assert_eq!(
        report(&mut it, second.job(), 1, ended(0)),
        [close, forget(second)],
        "the detached actor lives"
    );
    let over = [closing(1), CoordinatorEffect::Exit { code: 5 }];
    assert_eq!(report(&mut it, RUNNER.job(), 1, ended(0)), over);
    assert!(!it.admits(member(99)), "a further main comes too late");
}

#[test]
fn what_a_main_stored_that_never_connected_is_forgotten() {
    let mut it = application(None);
    let second = member(9);
    effects(|effects| it.main(second.job(), effects));
    assert_eq!(report(&mut it, second.job(), 0, RunnerState::Live), []);
    assert_eq!(report(&mut it, second.job(), 1, ended(137)), [forget(second)]);
}

const fn closing(number: u64) -> CoordinatorEffect {
    CoordinatorEffect::AwaitClosing { closing: ClosingNumber(number) }
}

/// A runner of tasks that a main wants.
fn with_runner(it: &mut Coordinator) {
    let class = TaskClass { gpus: Share(0), claims: Bytes::new() };
    received(it, MAIN, ToCoordinator::WantRunners { class, runners: 1 });
    effects(|effects| it.task_runner_submitted(TaskRunnerNumber(1), Ok(RUNNER.job()), effects));
    effects(|effects| it.connected(RUNNER, "n0", effects));
}

#[test]
fn processes_are_told_and_waited_for_when_the_application_is_over() {
    let mut it = application(None);
    with_runner(&mut it);
    let over = report(&mut it, MAIN.job(), 1, ended(3));
    assert!(over.contains(&send(RUNNER, FromCoordinator::End)) && over.contains(&closing(1)), "{over:?}");
    assert!(!over.contains(&CoordinatorEffect::Exit { code: 3 }), "the runner has not ended: {over:?}");
    let ended = report(&mut it, RUNNER.job(), 1, ended(0));
    assert_eq!(ended.last(), Some(&CoordinatorEffect::Exit { code: 3 }));
    assert_eq!(effects(|effects| it.closing_over(ClosingNumber(1), effects)), [], "it is over");
}

#[test]
fn an_application_does_not_wait_for_processes_for_ever_and_a_further_main_lets_it_go_on() {
    let mut it = application(None);
    with_runner(&mut it);
    report(&mut it, MAIN.job(), 1, ended(3));
    let second = member(9);
    effects(|effects| it.main(second.job(), effects));
    effects(|effects| it.connected(second, "n0", effects));
    report(&mut it, second.job(), 0, RunnerState::Live);
    assert_eq!(effects(|effects| it.closing_over(ClosingNumber(1), effects)), [], "a main runs");
    let over = report(&mut it, second.job(), 1, ended(0));
    assert!(over.contains(&closing(2)), "{over:?}");
    assert_eq!(effects(|effects| it.closing_over(ClosingNumber(1), effects)), []);
    let exit = CoordinatorEffect::Exit { code: 3 };
    assert_eq!(effects(|effects| it.closing_over(ClosingNumber(2), effects)), [exit]);
}
