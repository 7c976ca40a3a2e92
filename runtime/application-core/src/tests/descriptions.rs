//! What is told to whoever looks at an application: actors, runners, and the tasks of processes.

use bytes::Bytes;
use cohabit_types::{RankId, Share, Span};

use super::kit::{MAIN, ROOT, actor, class, effects, gpu_class, member, named, root_node, spec, task, write};
use crate::{
    ActorDescription, ActorEnd, ActorState, ActorWait, CallError, CallNumber, CallValue, CalledTasks,
    Carried, ClassDescription, Coordinator, CoordinatorEffect, EndedTaskDescription, FromCoordinator,
    GangSpec, IncarnationNumber, Lifetime, MAX_DESCRIBED_TASKS, MAX_DESCRIBED_TEXT, MAX_REMEMBERED_TASKS,
    Member, MemberDescription, MemberEffect, MemberTopic, NodeNumber, RequestNumber, RunnerCondition,
    RunnerDescription, RunnerReport, RunnerState, StartedTaskDescription, TaskDescription, TaskOutcome,
    TaskPlace, TaskRequest, TaskRunnerNumber, TaskSpec, TaskWait, Ticket, ToCallee, ToCaller, ToCoordinator,
};

const RUNNER: RankId = member(3);
const OTHER: RankId = member(4);

/// An application that may use one GPU, with a connected main.
fn application() -> Coordinator {
    let mut it = Coordinator::new(ROOT, root_node(), Some(Share::WHOLE), None);
    effects(|effects| {
        it.main(MAIN.job(), effects);
        it.connected(MAIN, "n0", effects);
    });
    it
}

fn received(it: &mut Coordinator, from: RankId, frame: ToCoordinator) -> Vec<CoordinatorEffect> {
    effects(|effects| it.received(from, frame, effects))
}

fn create(it: &mut Coordinator, gang: GangSpec, carries: Vec<Carried>) {
    received(it, MAIN, ToCoordinator::Create { request: RequestNumber(1), gang, carries: vec![carries] });
}

fn waits(it: &mut Coordinator, job: RankId, why: &str) {
    let state = RunnerState::Waiting { why: why.to_owned(), shortage: None };
    effects(|effects| it.report(job.job(), RunnerReport { ended_attempts: 0, state }, effects));
}

fn pending(why: &str) -> ActorState {
    ActorState::Pending { why: why.to_owned() }
}

#[test]
fn actors_are_described_with_what_they_wait_for_and_how_many_processes_hold_them() {
    let mut it = application();
    create(&mut it, GangSpec { gpus: Share::WHOLE, ..spec() }, Vec::new());
    let ada = GangSpec { gpus: Share(500), ..named("ada", Lifetime::Held) };
    create(&mut it, ada, vec![Carried::Actor(actor(1))]);
    effects(|effects| it.submitted(actor(1), Ok(RUNNER.job()), effects));
    waits(&mut it, RUNNER, "no GPU is free");
    let first = ActorDescription {
        actor: actor(1),
        kind: 7,
        name: None,
        rank: None,
        lifetime: Lifetime::Held,
        gpus: Share::WHOLE,
        state: pending("no GPU is free"),
        wait: ActorWait::Other,
        incarnation: 0,
        job: Some(RUNNER.job()),
        node: None,
        holders: 2,
    };
    let why = "needs 0.5 GPUs; 1 of max_gpus 1 are in use, and 0 others wait before it";
    let second = ActorDescription {
        actor: actor(2),
        name: Some("ada".to_owned()),
        gpus: Share(500),
        state: pending(why),
        wait: ActorWait::Ceiling,
        job: None,
        holders: 1,
        ..first.clone()
    };
    assert_eq!(it.describe().actors, [first.clone(), second]);

    effects(|effects| it.connected(RUNNER, "n0", effects));
    let incarnation = IncarnationNumber(1);
    received(&mut it, RUNNER, ToCoordinator::Constructed { incarnation });
    let ready = ActorState::Ready { member: RUNNER, incarnation };
    let node = Some(NodeNumber::COORDINATOR);
    let ready = ActorDescription { state: ready, incarnation: 1, node, ..first };
    assert_eq!(it.describe().actors[0], ready);

    received(&mut it, MAIN, ToCoordinator::Stop { request: RequestNumber(3), actor: actor(1) });
    let stopped = ActorState::Ended(ActorEnd::Stopped);
    assert_eq!(
        it.describe().actors[0],
        ActorDescription { state: stopped, ..ready },
        "its process may still run"
    );
}

#[test]
fn runners_of_tasks_are_described_by_class() {
    let mut it = application();
    let want = |class, runners| ToCoordinator::WantRunners { class, runners };
    received(&mut it, MAIN, want(class(), 2));
    let runner = |number, job: Option<RankId>, state| RunnerDescription {
        runner: TaskRunnerNumber(number),
        job: job.map(|job| job.job()),
        node: matches!(state, RunnerCondition::Live { .. }).then_some(NodeNumber::COORDINATOR),
        state,
    };
    let is_pending = |why: &str| RunnerCondition::Pending { why: why.to_owned() };
    let free = |runners| ClassDescription { class: class(), wanted: 2, runners };
    assert_eq!(it.describe().classes, [free(vec![runner(1, None, is_pending("it is being submitted"))])]);

    effects(|effects| it.task_runner_submitted(TaskRunnerNumber(1), Ok(RUNNER.job()), effects));
    waits(&mut it, RUNNER, "no core is free");
    assert_eq!(it.describe().classes, [free(vec![runner(1, Some(RUNNER), is_pending("no core is free"))])]);

    effects(|effects| it.connected(RUNNER, "n0", effects));
    received(&mut it, MAIN, want(gpu_class(1_000), 1));
    received(&mut it, MAIN, want(gpu_class(500), 1));
    let live = runner(1, Some(RUNNER), RunnerCondition::Live { member: RUNNER });
    let next = runner(2, None, is_pending("it is being submitted"));
    let whole = ClassDescription {
        class: gpu_class(1_000),
        wanted: 1,
        runners: vec![runner(3, None, is_pending("it is being submitted"))],
    };
    let short = is_pending("needs 0.5 GPUs; 1 of max_gpus 1 are in use");
    let half = ClassDescription { class: gpu_class(500), wanted: 1, runners: vec![runner(4, None, short)] };
    assert_eq!(it.describe().classes, [free(vec![live, next]), half, whole]);
}

#[test]
fn members_are_asked_and_their_answers_come_back() {
    let mut it = application();
    let (request, topic) = (RequestNumber(7), MemberTopic::Tasks);
    let mut asked = Default::default();
    let sent = effects(|effects| asked = it.ask_members(request, topic, effects));
    let frame = FromCoordinator::Describe { request, topic };
    assert_eq!(sent, [CoordinatorEffect::Send { to: MAIN, frame: frame.clone() }]);
    assert_eq!(asked, [MAIN].into());

    let mut main = Member::new(MAIN, ROOT);
    let answer = effects(|effects| main.receive(frame, effects));
    let [MemberEffect::ToCoordinator(frame)] = answer.as_slice() else { panic!("{answer:?}") };
    let description = Box::<MemberDescription>::default();
    assert_eq!(
        received(&mut it, MAIN, frame.clone()),
        [CoordinatorEffect::Described { member: MAIN, request, description }]
    );
    assert_eq!(received(&mut it, OTHER, frame.clone()), [], "it is no member");
}

fn call(it: &mut Member, spec: &TaskSpec) {
    effects(|effects| _ = it.run_task(spec.clone(), effects).unwrap());
}

fn joins(it: &mut Member, runner: RankId) {
    effects(|effects| it.receive(FromCoordinator::RunnerJoined { class: class(), runner }, effects));
}

fn says(it: &mut Member, frame: ToCaller) {
    effects(|effects| it.receive_from_callee(RUNNER, frame, effects));
}

fn ran(it: &mut Member, call: u64, result: Result<Bytes, CallError>, took: Span) {
    let result = result.map(CallValue::Inline);
    says(it, ToCaller::Ran { call: CallNumber(call), result, carries: Vec::new(), took });
}

fn described(call: u64, place: TaskPlace) -> TaskDescription {
    TaskDescription { call: CallNumber(call), function: 3, depth: 0, place }
}

#[test]
fn a_caller_describes_its_tasks_and_how_the_last_ones_ended() {
    let mut main = Member::new(MAIN, ROOT);
    joins(&mut main, RUNNER);
    for _ in 0..4 {
        call(&mut main, &task());
    }
    says(&mut main, ToCaller::Parked { call: CallNumber(1) });
    let tasks = vec![
        described(1, TaskPlace::Parked { runner: RUNNER }),
        described(2, TaskPlace::Sent { runner: RUNNER }),
        described(3, TaskPlace::Sent { runner: RUNNER }),
        described(4, TaskPlace::Waiting),
    ];
    let called = vec![CalledTasks { class: class(), tasks }];
    let unended = MemberDescription { called, ..MemberDescription::default() };
    assert_eq!(main.describe(MemberTopic::Tasks), unended);
    assert_eq!(main.describe(MemberTopic::Calls), MemberDescription::default());

    let took = Span::from_micros(5);
    ran(&mut main, 2, Ok(Bytes::new()), took);
    ran(&mut main, 3, Err(CallError::Failed("x".repeat(1_000))), took);
    effects(|effects| main.cancel_task(CallNumber(1), effects));
    ran(&mut main, 1, Err(CallError::Cancelled), took);
    effects(|effects| main.receive(FromCoordinator::MemberEnded { member: RUNNER }, effects));
    let ended = |call, outcome, text: &str, took| EndedTaskDescription {
        call: CallNumber(call),
        function: 3,
        depth: 0,
        outcome,
        text: text.to_owned(),
        runner: Some(RUNNER),
        took,
    };
    let description = main.describe(MemberTopic::Tasks);
    let [lost, cancelled, failed, returned] = description.ended.as_slice() else { panic!("{description:?}") };
    assert_eq!((lost.outcome, lost.took), (TaskOutcome::Lost, None));
    assert_eq!(*cancelled, ended(1, TaskOutcome::Cancelled, "", Some(took)));
    let text = "x".repeat(MAX_DESCRIBED_TEXT) + "…";
    assert_eq!(*failed, ended(3, TaskOutcome::Failed, &text, Some(took)));
    assert_eq!(*returned, ended(2, TaskOutcome::Returned, "", Some(took)));
    assert!(description.called.is_empty() && description.omitted == 0);
}

/// One that waits to be sent again has not ended.
#[test]
fn a_task_that_is_tried_again_has_not_ended() {
    let mut main = Member::new(MAIN, ROOT);
    joins(&mut main, RUNNER);
    call(&mut main, &TaskSpec { retries: 1, on_error: crate::OnTaskError::Retry, ..task() });
    ran(&mut main, 1, Err(CallError::Failed("no".to_owned())), Span::ZERO);
    assert_eq!(main.describe(MemberTopic::Tasks).ended, []);
    ran(&mut main, 1, Err(CallError::Failed("again".to_owned())), Span::ZERO);
    assert_eq!(main.describe(MemberTopic::Tasks).ended[0].text, "again");
}

#[test]
fn a_runner_describes_what_it_has_started() {
    let mut runner = Member::new(MAIN, ROOT);
    effects(|effects| runner.receive(FromCoordinator::ServeTasks { class: class() }, effects));
    for call in [1, 2] {
        let TaskSpec { function, arguments, .. } = task();
        let task =
            TaskRequest { function, depth: 0, arguments, needs: Vec::new(), resume: None, store_as: None };
        let frame = ToCallee::Run { call: CallNumber(call), task, carries: Vec::new() };
        effects(|effects| runner.receive_from_caller(MAIN, frame, effects));
    }
    let started = |call| StartedTaskDescription { caller: MAIN, call: CallNumber(call) };
    assert_eq!(runner.describe(MemberTopic::Tasks).started, [started(1)], "the second one waits");
    effects(|effects| runner.task_waits(Ticket(1), TaskWait::Tasks, effects));
    assert_eq!(runner.describe(MemberTopic::Tasks).started, [started(1), started(2)]);
}

#[test]
fn a_caller_describes_how_many_of_its_calls_have_not_ended() {
    let mut main = Member::new(MAIN, ROOT);
    effects(|effects| {
        let request = main.create(spec(), Vec::new(), effects).unwrap();
        main.receive(FromCoordinator::Created { request, result: Ok(actor(1)) }, effects);
        main.call(actor(1), write(), Vec::new(), effects).unwrap();
        main.call(actor(1), write(), Vec::new(), effects).unwrap();
    });
    assert_eq!(main.describe(MemberTopic::Calls).calls, [(actor(1), 2)]);
}

/// Tasks that were sent come first, then those that wait, then those that have ended; the rest is counted.
#[test]
fn what_does_not_fit_a_description_is_counted() {
    let mut main = Member::new(MAIN, ROOT);
    joins(&mut main, RUNNER);
    let rounds = MAX_REMEMBERED_TASKS as u64 + 5;
    for number in 1..=rounds {
        call(&mut main, &task());
        ran(&mut main, number, Ok(Bytes::new()), Span::from_secs(1));
    }
    let description = main.describe(MemberTopic::Tasks);
    assert_eq!((description.ended.len(), description.omitted), (MAX_REMEMBERED_TASKS, 5));
    assert_eq!(description.ended[0].call, CallNumber(rounds), "the newest is first");
    for _ in 0..MAX_DESCRIBED_TASKS {
        call(&mut main, &task());
    }
    let gpu_task = TaskSpec { class: gpu_class(1_000), caller: Some(Ticket(1)), ..task() };
    (0..3).for_each(|_| call(&mut main, &gpu_task));
    let description = main.describe(MemberTopic::Tasks);
    assert_eq!(description.called.len(), 1);
    assert_eq!(description.called[0].tasks.len(), MAX_DESCRIBED_TASKS);
    assert_eq!((description.ended.len() as u64, description.omitted), (0, rounds + 3));
}
