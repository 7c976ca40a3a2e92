//! Tasks that would wait for ever for GPUs of their own application: a whole application on one node.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use cohabit_types::{JobId, RankId, Share, Span};

use super::kit::{MAIN, ROOT, class, effects, gpu_class, inline, root_node, task};
use crate::{
    CallError, CallNumber, CallValue, Coordinator, CoordinatorEffect, FromCoordinator, HeldId, Member,
    MemberEffect, ObjectId, ObjectValue, RunnerReport, RunnerState, TaskClass, TaskRequest, TaskRunnerNumber,
    TaskSpec, TaskWait, Ticket, ToCallee, ToCaller, ToCoordinator,
};

/// A task that runs: its process, and what that calls it.
type Running = (RankId, Ticket);

/// An application whose frames all arrive in order.
struct Application {
    coordinator: Coordinator,
    members: BTreeMap<RankId, Member>,
    steps: VecDeque<Step>,
    /// The GPUs that no job has, in thousandths.
    free: u32,
    /// The head refuses further runners.
    refuses: bool,
    /// Jobs for which there is no room, and then those that run.
    waiting: Vec<(JobId, TaskClass)>,
    jobs: BTreeMap<JobId, TaskClass>,
    started: Vec<Running>,
    finished: BTreeMap<(RankId, CallNumber), Result<CallValue, CallError>>,
    last_job: u64,
}

enum Step {
    Coordinator(CoordinatorEffect),
    Member(RankId, MemberEffect),
}

impl Application {
    /// On a node with so many thousandths of GPUs.
    fn on(gpus: u32, ceiling: Option<Share>) -> Application {
        let mut it = Application {
            coordinator: Coordinator::new(ROOT, root_node(), ceiling, Some(Share(gpus))),
            members: BTreeMap::from([(MAIN, Member::new(MAIN, ROOT))]),
            steps: VecDeque::new(),
            free: gpus,
            refuses: false,
            waiting: Vec::new(),
            jobs: BTreeMap::new(),
            started: Vec::new(),
            finished: BTreeMap::new(),
            last_job: 100,
        };
        it.coordinate(|core, all| {
            core.main(MAIN.job(), all);
            core.connected(MAIN, "n0", all);
        });
        it
    }

    fn coordinate(&mut self, act: impl FnOnce(&mut Coordinator, &mut Vec<CoordinatorEffect>)) {
        let new = effects(|all| act(&mut self.coordinator, all));
        self.steps.extend(new.into_iter().map(Step::Coordinator));
    }

    fn act(&mut self, who: RankId, act: impl FnOnce(&mut Member, &mut Vec<MemberEffect>)) {
        let Some(member) = self.members.get_mut(&who) else { return };
        let new = effects(|all| act(member, all));
        self.steps.extend(new.into_iter().map(|effect| Step::Member(who, effect)));
    }

    /// Until nothing is under way.
    fn settle(&mut self) {
        let mut steps = 0;
        while let Some(step) = self.steps.pop_front() {
            steps += 1;
            assert!(steps < 300, "it has no end");
            match step {
                Step::Coordinator(effect) => self.coordinator_does(effect),
                Step::Member(who, effect) => self.member_does(who, effect),
            }
        }
    }

    fn coordinator_does(&mut self, effect: CoordinatorEffect) {
        if let CoordinatorEffect::Send { to, frame } = effect {
            self.act(to, |it, all| it.receive(frame, all));
        } else if let CoordinatorEffect::SubmitTaskRunner { runner, class } = effect {
            self.submit(runner, class);
        } else if let CoordinatorEffect::CancelRunner { job } = effect {
            self.end(job);
        }
    }

    fn member_does(&mut self, who: RankId, effect: MemberEffect) {
        if let MemberEffect::ToCoordinator(frame) = effect {
            self.coordinate(|core, all| core.received(who, frame, all));
        } else if let MemberEffect::ToCallee { to, frame } = effect {
            self.act(to, |it, all| it.receive_from_caller(who, frame, all));
        } else if let MemberEffect::ToCaller { to, frame } = effect {
            self.act(to, |it, all| it.receive_from_callee(who, frame, all));
        } else if let MemberEffect::StartTask { ticket, .. } = effect {
            self.started.push((who, ticket));
        } else if let MemberEffect::Finish { call, result, .. } = effect {
            self.finished.insert((who, call), result);
        } else if effect == MemberEffect::End {
            self.end(who.job());
        }
    }

    fn submit(&mut self, runner: TaskRunnerNumber, class: TaskClass) {
        if self.refuses {
            let refusal = Err("too many jobs".to_owned());
            return self.coordinate(|core, all| core.task_runner_submitted(runner, refusal, all));
        }
        self.last_job += 1;
        let job = JobId::new(self.last_job);
        self.coordinate(|core, all| core.task_runner_submitted(runner, Ok(job), all));
        self.waiting.push((job, class));
        self.place();
    }

    /// Starts what there is room for.
    fn place(&mut self) {
        while let Some(at) = self.waiting.iter().position(|(_, class)| class.gpus.0 <= self.free) {
            let (job, class) = self.waiting.remove(at);
            self.free -= class.gpus.0;
            self.jobs.insert(job, class);
            let member = job.attempt(1).rank(0);
            self.members.insert(member, Member::new(member, ROOT));
            self.coordinate(|core, all| core.connected(member, "n0", all));
        }
    }

    fn end(&mut self, job: JobId) {
        self.waiting.retain(|(it, _)| *it != job);
        if let Some(class) = self.jobs.remove(&job) {
            self.free += class.gpus.0;
        }
        self.members.remove(&job.attempt(1).rank(0));
        let report = RunnerReport {
            ended_attempts: 1,
            state: RunnerState::Ended { code: 0, text: "it has ended".to_owned() },
        };
        self.coordinate(|core, all| core.report(job, report, all));
        self.place();
    }

    /// A main, or a running task, calls a task.
    fn call(&mut self, who: RankId, caller: Option<Ticket>, class: TaskClass) -> (RankId, CallNumber) {
        let mut call = None;
        let spec = TaskSpec { caller, class, ..task() };
        self.act(who, |it, all| call = Some(it.run_task(spec, all).unwrap()));
        self.settle();
        (who, call.unwrap())
    }

    /// A running task calls one and waits for it.
    fn nest(&mut self, (who, ticket): Running, class: TaskClass) -> (RankId, CallNumber) {
        let call = self.call(who, Some(ticket), class);
        self.waits((who, ticket), TaskWait::Tasks);
        call
    }

    /// A running task calls a task that needs this reference, for a reference. What both are called.
    fn call_behind(
        &mut self,
        (who, ticket): Running,
        needs: Option<ObjectId>,
        class: TaskClass,
    ) -> (CallNumber, ObjectId) {
        let (mut called, needs) = (None, Vec::from_iter(needs));
        let carries = needs.iter().map(|object| HeldId::Object(*object)).collect();
        let spec = TaskSpec { caller: Some(ticket), class, needs, carries, ..task() };
        self.act(who, |it, all| called = Some(it.run_task_for_reference(spec, all).unwrap()));
        self.settle();
        called.unwrap()
    }

    /// What a reference of a process stands for.
    fn value_of(&self, who: RankId, object: ObjectId) -> Option<ObjectValue> {
        self.members[&who].object_value(object)
    }

    fn waits(&mut self, (who, ticket): Running, wait: TaskWait) {
        self.act(who, |it, all| it.task_waits(ticket, wait, all));
        self.settle();
    }

    fn task_ends(&mut self, (who, ticket): Running) {
        self.act(who, |it, all| it.task_goes_on(ticket, all));
        let (value, took) = (Ok(inline("value")), Span::from_micros(10));
        self.act(who, |it, all| it.task_ended(ticket, value, Vec::new(), took, all));
        self.settle();
    }

    fn has_value(&self, call: (RankId, CallNumber)) -> bool {
        self.finished.get(&call).is_some_and(Result::is_ok)
    }

    /// The text of the error of a call that would wait for ever.
    fn deadlock(&self, call: (RankId, CallNumber)) -> Option<&str> {
        match self.finished.get(&call)? {
            Err(CallError::Deadlock(text)) => Some(text),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_task_that_awaits_one_for_its_own_gpu_is_told() {
    let mut it = Application::on(1_000, None);
    let outer = it.call(MAIN, None, gpu_class(1_000));
    let running = it.started[0];
    let inner = it.nest(running, gpu_class(1_000));
    assert_eq!(
        it.deadlock(inner),
        Some(
            "the task would wait for ever: it needs 1 GPUs, and tasks that wait for others hold 1 of the 1 that \
             the application can have. End a task before the next one is awaited that needs GPUs, let tasks claim \
             less, or let the application have more (max_gpus of main, or a node with more GPUs)"
        )
    );
    assert_eq!(it.started.len(), 1);
    // It goes on, and so does its runner.
    it.task_ends(running);
    assert!(it.has_value(outer));
    let next = it.call(MAIN, None, gpu_class(1_000));
    let running = it.started[1];
    it.task_ends(running);
    assert!(it.has_value(next));
}

/// Its process had said that it has nothing to do, and a task came before the answer.
#[test]
fn a_task_whose_process_is_to_end_is_told_as_others_are() {
    let mut it = Application::on(1_000, None);
    let outer = it.call(MAIN, None, gpu_class(1_000));
    let running = it.started[0];
    it.coordinate(|core, all| core.received(running.0, ToCoordinator::Idle, all));
    it.settle();
    let inner = it.nest(running, gpu_class(1_000));
    assert!(it.deadlock(inner).is_some());
    it.task_ends(running);
    assert!(it.has_value(outer));
}

#[test]
fn a_task_may_await_one_for_which_there_is_a_gpu() {
    let mut it = Application::on(2_000, None);
    let outer = it.call(MAIN, None, gpu_class(1_000));
    let inner = it.nest(it.started[0], gpu_class(1_000));
    assert_eq!((it.deadlock(inner), it.started.len()), (None, 2));
    let innermost = it.nest(it.started[1], gpu_class(500));
    assert!(it.deadlock(innermost).is_some() && it.deadlock(inner).is_none());
    it.task_ends(it.started[1]);
    it.task_ends(it.started[0]);
    assert!(it.has_value(inner) && it.has_value(outer));
}

#[test]
fn the_ceiling_counts_as_the_node_does() {
    let mut it = Application::on(2_000, Some(Share(1_000)));
    it.call(MAIN, None, gpu_class(500));
    let inner = it.nest(it.started[0], gpu_class(1_000));
    assert!(it.deadlock(inner).unwrap().contains("hold 0.5 of the 1 that"));
}

#[test]
fn a_task_without_gpus_in_between_hides_nothing() {
    let mut it = Application::on(1_000, None);
    it.call(MAIN, None, gpu_class(1_000));
    let middle = it.nest(it.started[0], class());
    assert_eq!((it.deadlock(middle), it.started.len()), (None, 2), "it runs");
    let inner = it.nest(it.started[1], gpu_class(1_000));
    assert!(it.deadlock(inner).is_some());
    it.task_ends(it.started[1]);
    assert!(it.has_value(middle));
}

#[test]
fn a_task_that_runs_in_between_may_end_everything() {
    let mut it = Application::on(1_000, None);
    it.call(MAIN, None, gpu_class(1_000));
    let runs = it.call(it.started[0].0, Some(it.started[0].1), class());
    let waits = it.nest(it.started[0], gpu_class(1_000));
    assert_eq!((it.deadlock(waits), it.started.len()), (None, 2));
    it.task_ends(it.started[1]);
    assert!(it.has_value(runs) && it.deadlock(waits).is_none(), "the outer one goes on");
    it.waits(it.started[0], TaskWait::Tasks);
    assert!(it.deadlock(waits).is_some());
}

#[test]
fn a_task_that_waits_for_an_actor_is_not_told() {
    let mut it = Application::on(1_000, None);
    it.call(MAIN, None, gpu_class(1_000));
    let (who, ticket) = it.started[0];
    let inner = it.call(who, Some(ticket), gpu_class(1_000));
    it.waits((who, ticket), TaskWait::Others);
    assert_eq!(it.deadlock(inner), None);
    it.act(who, |it, all| it.task_goes_on(ticket, all));
    it.waits((who, ticket), TaskWait::Tasks);
    assert!(it.deadlock(inner).is_some());
}

#[test]
fn of_two_trees_that_hold_everything_only_the_last_is_told() {
    let mut it = Application::on(2_000, None);
    it.call(MAIN, None, gpu_class(1_000));
    it.call(MAIN, None, gpu_class(1_000));
    assert_eq!(it.started.len(), 2, "on two runners");
    let first = it.nest(it.started[0], gpu_class(1_000));
    assert_eq!(it.deadlock(first), None, "the other one may end");
    let second = it.nest(it.started[1], gpu_class(1_000));
    assert!(it.deadlock(second).is_some() && it.deadlock(first).is_none());
    it.task_ends(it.started[1]);
    assert_eq!(it.started.len(), 3);
    it.task_ends(it.started[2]);
    assert!(it.has_value(first));
}

#[test]
fn who_holds_gpus_and_needs_few_passes_others_by() {
    let mut it = Application::on(1_000, Some(Share(1_000)));
    it.call(MAIN, None, gpu_class(750));
    let other = it.call(MAIN, None, gpu_class(1_000));
    let inner = it.nest(it.started[0], gpu_class(250));
    assert_eq!((it.deadlock(inner), it.started.len()), (None, 2), "there is room for it");
    it.task_ends(it.started[1]);
    it.task_ends(it.started[0]);
    assert!(it.has_value(inner));
    assert_eq!(it.deadlock(other), None);
}

#[test]
fn a_refusal_of_the_head_is_the_end_of_waiting() {
    let mut it = Application::on(4_000, None);
    it.call(MAIN, None, gpu_class(1_000));
    it.refuses = true;
    let inner = it.nest(it.started[0], gpu_class(1_000));
    assert!(it.deadlock(inner).is_some());
}

#[test]
fn who_waits_for_calls_that_need_each_other_is_told() {
    let mut it = Application::on(1_000, None);
    it.call(MAIN, None, gpu_class(1_000));
    let (who, ticket) = it.started[0];
    let (_, first) = it.call_behind((who, ticket), None, gpu_class(1_000));
    let (_, second) = it.call_behind((who, ticket), Some(first), class());
    let (_, third) = it.call_behind((who, ticket), Some(second), gpu_class(1_000));
    it.waits((who, ticket), TaskWait::Tasks);
    let value = it.value_of(who, first);
    assert!(matches!(value, Some(ObjectValue::Failed(CallError::Deadlock(_)))), "{value:?}");
    for behind in [second, third] {
        let value = it.value_of(who, behind);
        assert!(matches!(value, Some(ObjectValue::Failed(CallError::Dependency(_)))), "{value:?}");
    }
}

#[test]
fn a_call_that_needs_another_runs_when_that_has_ended() {
    let mut it = Application::on(2_000, None);
    it.call(MAIN, None, gpu_class(1_000));
    let outer = it.started[0];
    let (_, first) = it.call_behind(outer, None, gpu_class(1_000));
    let (_, second) = it.call_behind(outer, Some(first), gpu_class(1_000));
    it.waits(outer, TaskWait::Tasks);
    assert_eq!((it.started.len(), it.value_of(outer.0, first)), (2, None));
    it.task_ends(it.started[1]);
    it.waits(outer, TaskWait::Tasks);
    assert_eq!((it.started.len(), it.value_of(outer.0, second)), (3, None));
    it.task_ends(it.started[2]);
    assert!(matches!(it.value_of(outer.0, second), Some(ObjectValue::Inline(_))));
}

#[test]
fn a_call_that_needs_a_reference_of_others_may_end() {
    let mut it = Application::on(1_000, None);
    let mut needed = None;
    it.act(MAIN, |it, all| needed = Some(it.run_task_for_reference(task(), all).unwrap().1));
    it.settle();
    let (_, needed) = (it.started[0], needed.unwrap());
    let carries = vec![HeldId::Object(needed)];
    let spec = TaskSpec { class: gpu_class(1_000), carries, ..task() };
    it.act(MAIN, |it, all| _ = it.run_task(spec, all).unwrap());
    it.settle();
    let outer = it.started[1];
    let (_, behind) = it.call_behind(outer, Some(needed), gpu_class(1_000));
    let first = it.nest(outer, gpu_class(1_000));
    assert_eq!((it.deadlock(first), it.value_of(outer.0, behind)), (None, None));
    // Its maker ends with a value: now both wait for what the outer one has.
    it.task_ends(it.started[0]);
    assert!(it.deadlock(first).is_some());
    it.waits(outer, TaskWait::Tasks);
    let value = it.value_of(outer.0, behind);
    assert!(matches!(value, Some(ObjectValue::Failed(CallError::Deadlock(_)))), "{value:?}");
}

#[test]
fn what_the_node_has_no_room_for_is_in_nobodys_way() {
    let mut it = Application::on(1_500, Some(Share(2_250)));
    it.call(MAIN, None, gpu_class(1_000));
    it.call(MAIN, None, gpu_class(250));
    it.call(MAIN, None, gpu_class(1_000));
    assert_eq!(it.started.len(), 2, "the third one has no room");
    let inner = it.nest(it.started[1], gpu_class(250));
    assert_eq!((it.deadlock(inner), it.started.len()), (None, 3));
}

/// The processes of the tests of words that come too late: the runner of a task that waits, and another one.
const RUNNER: RankId = JobId::new(5).attempt(1).rank(0);
const OTHER: RankId = JobId::new(6).attempt(1).rank(0);

/// A runner whose task waits for a call that the other runner has, and what says that it is blocked.
fn blocked_runner() -> (Member, CallNumber, MemberEffect) {
    let class = gpu_class(1_000);
    let mut it = Member::new(RUNNER, ROOT);
    effects(|all| it.receive(FromCoordinator::ServeTasks { class: class.clone() }, all));
    let joined = FromCoordinator::RunnerJoined { class: class.clone(), runner: OTHER };
    effects(|all| it.receive(joined, all));
    let (function, depth, arguments) = (1, 0, Bytes::new());
    let request = TaskRequest { function, depth, arguments, needs: Vec::new(), resume: None, store_as: None };
    let run = ToCallee::Run { call: CallNumber(1), task: request, carries: Vec::new() };
    effects(|all| it.receive_from_caller(MAIN, run, all));
    let spec = TaskSpec { caller: Some(Ticket(1)), class: class.clone(), retries: 3, ..task() };
    let mut inner = None;
    effects(|all| inner = Some(it.run_task(spec, all).unwrap()));
    let blocked = MemberEffect::ToCoordinator(ToCoordinator::Blocked { needs: vec![class] });
    assert!(effects(|all| it.task_waits(Ticket(1), TaskWait::Tasks, all)).contains(&blocked));
    (it, inner.unwrap(), blocked)
}

#[test]
fn a_word_of_a_deadlock_that_comes_too_late_is_asked_for_again() {
    let (mut it, call, blocked) = blocked_runner();
    let text = "there is nothing left".to_owned();
    let told = effects(|all| it.receive(FromCoordinator::Deadlock { text: text.clone() }, all));
    assert_eq!(told, [MemberEffect::ToCallee { to: OTHER, frame: ToCallee::Deadlock { call, text } }]);
    // The other runner has just sent it back, so the word comes to nobody.
    effects(|all| it.receive_from_callee(OTHER, ToCaller::Paused, all));
    let returned = effects(|all| it.receive_from_callee(OTHER, ToCaller::Returned { call }, all));
    assert!(returned.contains(&blocked), "{returned:?}");
}

#[test]
fn a_question_that_comes_too_late_is_asked_again() {
    // The other runner sends the call back, or ends, and so answers nothing.
    for ends in [false, true] {
        let (mut it, call, blocked) = blocked_runner();
        let asked = effects(|all| it.receive(FromCoordinator::Probe { probe: 7 }, all));
        assert_eq!(asked, [MemberEffect::ToCallee { to: OTHER, frame: ToCallee::Probe { call, probe: 7 } }]);
        effects(|all| it.receive_from_callee(OTHER, ToCaller::Paused, all));
        let said = effects(|all| match ends {
            true => it.receive(FromCoordinator::MemberEnded { member: OTHER }, all),
            false => it.receive_from_callee(OTHER, ToCaller::Returned { call }, all),
        });
        assert!(said.contains(&blocked), "{said:?}");
    }
}
