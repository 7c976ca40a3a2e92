//! Blocked tasks of a process: what their callers and the coordinator are told of them, questions whether
//! they still are, and the end of those that would wait for ever.

use cohabit_types::RankId;

use crate::dependents::Callee;
use crate::frames::{ToCallee, ToCaller, ToCoordinator};
use crate::ids::{CallNumber, Ticket};
use crate::member::Member;
use crate::member_effect::MemberEffect;
use crate::task_calls::deadlock;
use crate::task_class::TaskClass;
use crate::task_gate::BlockedTask;
use crate::task_probes::{AnsweredProbe, ProbeAsker};
use crate::task_wait::WaitChanges;

impl Member {
    /// A running task waits, or goes on.
    pub(crate) fn update_needs(&mut self, task: Ticket, effects: &mut Vec<MemberEffect>) {
        let waits = self.task_gate.waits_for_tasks(task);
        let needs = if waits { self.needs_of(task) } else { Vec::new() };
        let was_asked = self.task_probes.abort(task);
        let mut changes = Vec::new();
        self.task_gate.set_needs(task, needs, was_asked, &mut changes);
        self.pass_tasks(changes, effects);
    }

    /// What a task needs that waits for all of its calls.
    fn needs_of(&self, task: Ticket) -> Vec<TaskClass> {
        let is_own = |object| {
            let pending = self.references.pending(object).filter(|it| it.callee == Callee::Task);
            pending.is_some_and(|it| self.task_calls.caller_of(it.call) == Some(task))
        };
        self.task_calls.needs(task, |call| self.dependents.missing(call).all(is_own))
    }

    /// Calls of running tasks have changed.
    pub(crate) fn update_all_needs(&mut self, effects: &mut Vec<MemberEffect>) {
        let WaitChanges { tasks, woken } = self.task_calls.take_wait_changes();
        woken.iter().for_each(|task| self.task_gate.wake(*task));
        tasks.union(&woken).for_each(|task| self.update_needs(*task, effects));
    }

    /// The runner of a call says what the call needs before it goes on.
    pub(crate) fn call_blocked(
        &mut self,
        from: RankId,
        call: CallNumber,
        needs: Vec<TaskClass>,
        effects: &mut Vec<MemberEffect>,
    ) {
        let changes = self.task_calls.call_blocked(from, call, needs);
        self.carry_out_tasks(changes, effects);
    }

    /// A runner takes no tasks for now.
    pub(crate) fn runner_paused(&mut self, runner: RankId, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.runner_paused(runner);
        self.carry_out_tasks(changes, effects);
    }

    /// A runner takes tasks again.
    pub(crate) fn runner_resumed(&mut self, runner: RankId, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.runner_resumed(runner);
        self.carry_out_tasks(changes, effects);
    }

    /// The coordinator asks whether the task that runs here is still blocked.
    pub(crate) fn probed(&mut self, probe: u64, effects: &mut Vec<MemberEffect>) {
        if let Some(task) = self.task_gate.blocked_task() {
            self.probe(task, probe, ProbeAsker::Coordinator, effects);
        }
    }

    /// A caller asks whether a task of it is still blocked. If it is not, the caller has been told.
    pub(crate) fn task_probed(
        &mut self,
        from: RankId,
        call: CallNumber,
        probe: u64,
        effects: &mut Vec<MemberEffect>,
    ) {
        match self.task_gate.blocked_call(from, call) {
            Some(BlockedTask::Started(task)) => self.probe(task, probe, ProbeAsker::Caller, effects),
            Some(BlockedTask::Waiting) => {
                self.answer_task(from, ToCaller::StillBlocked { call, probe }, Vec::new(), effects);
            }
            None => {}
        }
    }

    /// Calls have come back from a runner, which answers no question about them any more: what the tasks need
    /// that have made them is said again, and whoever asked asks again.
    pub(crate) fn report_anew(
        &mut self,
        has_come_back: impl Fn(CallNumber) -> bool,
        effects: &mut Vec<MemberEffect>,
    ) {
        for task in self.task_probes.awaiting(has_come_back) {
            self.update_needs(task, effects);
        }
    }

    /// The runner of a call says that the call is still blocked.
    pub(crate) fn call_still_blocked(
        &mut self,
        call: CallNumber,
        probe: u64,
        effects: &mut Vec<MemberEffect>,
    ) {
        let answered = self.task_probes.call_answered(call, probe);
        self.answer_probe(answered, effects);
    }

    /// The task that runs here would wait for ever.
    pub(crate) fn deadlocked(&mut self, text: &str, effects: &mut Vec<MemberEffect>) {
        if let Some(task) = self.task_gate.blocked_task() {
            self.fail_last_call(task, text, effects);
        }
    }

    /// A task of a caller would wait for ever.
    pub(crate) fn task_deadlocked(
        &mut self,
        from: RankId,
        call: CallNumber,
        text: &str,
        effects: &mut Vec<MemberEffect>,
    ) {
        match self.task_gate.blocked_call(from, call) {
            Some(BlockedTask::Started(task)) => self.fail_last_call(task, text, effects),
            Some(BlockedTask::Waiting) => {
                let mut changes = Vec::new();
                self.task_gate.fail_waiting((from, call), |class| deadlock(class, text), &mut changes);
                self.pass_tasks(changes, effects);
            }
            None => {}
        }
    }

    /// Fails the last of the calls that a blocked task waits for, or the last one below it.
    fn fail_last_call(&mut self, task: Ticket, text: &str, effects: &mut Vec<MemberEffect>) {
        match self.task_calls.blocked_calls(task).max_by_key(|(call, _)| *call) {
            Some((call, Some(to))) => {
                let frame = ToCallee::Deadlock { call, text: text.to_owned() };
                effects.push(MemberEffect::ToCallee { to, frame });
                // If the runner has it no longer, the word is lost, and this task says that it is blocked.
                self.task_probes.tell(task);
            }
            Some((call, None)) => {
                let changes = self.task_calls.fail(call, text);
                self.carry_out_tasks(changes, effects);
            }
            None => {}
        }
    }

    /// Asks the runners of all calls of a blocked task. Those that no runner has are known here.
    fn probe(&mut self, task: Ticket, probe: u64, asker: ProbeAsker, effects: &mut Vec<MemberEffect>) {
        if !self.task_probes.ask(task, probe, asker) {
            return;
        }
        let sent: Vec<(CallNumber, RankId)> =
            self.task_calls.blocked_calls(task).filter_map(|(call, to)| Some((call, to?))).collect();
        for (call, to) in &sent {
            let frame = ToCallee::Probe { call: *call, probe };
            effects.push(MemberEffect::ToCallee { to: *to, frame });
        }
        let answered = self.task_probes.await_calls(task, sent.into_iter().map(|(call, _)| call));
        self.answer_probe(answered, effects);
    }

    fn answer_probe(&mut self, answered: Option<AnsweredProbe>, effects: &mut Vec<MemberEffect>) {
        let Some(AnsweredProbe { task, number: probe, askers }) = answered else { return };
        for asker in askers {
            match (asker, self.task_gate.caller_of(task)) {
                (ProbeAsker::Coordinator, _) => {
                    effects.push(MemberEffect::ToCoordinator(ToCoordinator::StillBlocked { probe }));
                }
                (ProbeAsker::Caller, Some((caller, call))) => {
                    let frame = ToCaller::StillBlocked { call, probe };
                    self.answer_task(caller, frame, Vec::new(), effects);
                }
                (ProbeAsker::Caller, None) => {}
            }
        }
    }
}
