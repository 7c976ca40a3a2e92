//! The tasks of a process: those that it calls, and those that it runs.

use cohabit_types::{RankId, Span};

use crate::dependents::Callee;
use crate::errors::CallError;
use crate::frames::{TaskRequest, ToCallee, ToCaller, ToCoordinator};
use crate::held::HeldId;
use crate::ids::{CallNumber, ObjectId, Ticket};
use crate::member::{Member, check_size};
use crate::member_effect::MemberEffect;
use crate::object_value::CallValue;
use crate::task_calls::ClassEffects;
use crate::task_class::{TaskClass, TaskSpec};
use crate::task_gate::TaskGateEffect;
use crate::task_queue::{TaskAnswer, TaskEffect};
use crate::task_wait::TaskWait;

impl Member {
    /// Whether `run_task` would not say `Full` now for arguments of so many bytes.
    #[must_use]
    pub fn has_task_room(&self, caller: Option<Ticket>, bytes: usize) -> bool {
        self.task_calls.has_room(caller, bytes)
    }

    /// Has a task run; the answer is `Finish`.
    ///
    /// # Errors
    ///
    /// `Full` if too many tasks of the caller have not ended, `Refused` if the arguments are too large or the
    /// process does not hold what it uses, `Dependency` if it needs the value of a call that failed.
    pub fn run_task(
        &mut self,
        spec: TaskSpec,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<CallNumber, CallError> {
        self.run_task_as(None, spec, effects)
    }

    /// As `run_task`, with a reference to the value, which the process holds once.
    ///
    /// # Errors
    ///
    /// As `run_task`.
    pub fn run_task_for_reference(
        &mut self,
        spec: TaskSpec,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<(CallNumber, ObjectId), CallError> {
        let object = self.references.name();
        let call = self.run_task_as(Some(object), spec, effects)?;
        Ok((call, object))
    }

    fn run_task_as(
        &mut self,
        reference: Option<ObjectId>,
        spec: TaskSpec,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<CallNumber, CallError> {
        check_size(&spec.arguments)?;
        if !self.has_task_room(spec.caller, spec.arguments.len()) {
            return Err(CallError::Full);
        }
        self.check_held(&spec.carries)?;
        let missing = self.missing(&spec.needs)?;
        for carried in &spec.carries {
            self.holds.add(*carried);
        }
        let parent = spec.caller.and_then(|caller| self.task_gate.depth(caller));
        let depth = parent.map_or(0, |depth| depth.saturating_add(1));
        let call = self.next_call();
        if let Some(object) = reference {
            self.add_reference(object, call, Callee::Task);
        }
        if missing.is_empty() {
            let spread = self.spread(&spec.needs);
            let changes = self.task_calls.push(call, depth, spec, spread);
            self.carry_out_tasks(Some(changes), effects);
        } else {
            self.dependents.add(call, Callee::Task, missing);
            self.task_calls.hold_back(call, depth, spec);
            self.update_all_needs(effects);
        }
        Ok(call)
    }

    /// Everything is known that a task needs.
    pub(crate) fn admit_task(&mut self, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        let spread =
            self.task_calls.held_back_needs(call).map(|needs| self.spread(needs)).unwrap_or_default();
        let changes = self.task_calls.admit(call, spread);
        self.carry_out_tasks(changes, effects);
    }

    /// A task that was held back ends with this error.
    pub(crate) fn fail_task(&mut self, call: CallNumber, error: CallError, effects: &mut Vec<MemberEffect>) {
        if let Some(carries) = self.task_calls.take_held_back(call) {
            let result = Err(error);
            if !self.end_remake(call, None, &result, &[], effects) {
                self.end_call(call, result, Vec::new(), effects);
            }
            carries.into_iter().for_each(|carried| self.release(carried, effects));
            self.update_all_needs(effects);
        }
    }

    /// Nobody waits for the value of a task any more. It still ends with `Finish`.
    pub fn cancel_task(&mut self, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        self.fail_task(call, CallError::Cancelled, effects);
        let changes = self.task_calls.cancel(call);
        self.carry_out_tasks(changes, effects);
    }

    /// A task of this process has returned, or was interrupted (`Cancelled`). `carries` are the handles in
    /// its value, which the process still holds. `took` leaves out the time in which it waited for its own
    /// calls.
    pub fn task_ended(
        &mut self,
        ticket: Ticket,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        took: Span,
        effects: &mut Vec<MemberEffect>,
    ) {
        let Some((to, call)) = self.task_gate.finish(ticket) else { return };
        if self.admits(to) {
            let carries = self.carry_to(to, &carries, effects);
            let frame = ToCaller::Ran { call, result, carries, took };
            effects.push(MemberEffect::ToCaller { to, frame });
        }
        self.task_probes.abort(ticket);
        let mut changes = Vec::new();
        self.task_gate.advance(&mut changes);
        self.pass_tasks(changes, effects);
    }

    /// A running task of this process waits. If a call of it ends, the shell polls it, and says so again if
    /// it waits then.
    pub fn task_waits(&mut self, ticket: Ticket, wait: TaskWait, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        self.task_gate.wait(ticket, wait, &mut changes);
        self.pass_tasks(changes, effects);
        self.update_needs(ticket, effects);
    }

    /// A task that waited runs again.
    pub fn task_goes_on(&mut self, ticket: Ticket, effects: &mut Vec<MemberEffect>) {
        self.task_gate.go_on(ticket);
        self.update_needs(ticket, effects);
    }

    /// The time of a rest is over.
    pub fn rested(&mut self, rest: u64, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        self.task_gate.rested(rest, &mut changes);
        self.pass_tasks(changes, effects);
    }

    /// A running task does not end though it was interrupted: the process ends without it. What waits goes
    /// back to its callers.
    pub fn abandon(&mut self, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        self.task_gate.abandon(&mut changes);
        self.pass_tasks(changes, effects);
    }

    /// Tasks may be sent to a runner from now on.
    pub(crate) fn runner_joined(
        &mut self,
        class: TaskClass,
        runner: RankId,
        effects: &mut Vec<MemberEffect>,
    ) {
        if self.admits(runner) {
            let changes = self.task_calls.runner_joined(class, runner, self.nodes.of(runner));
            self.carry_out_tasks(Some(changes), effects);
        }
    }

    /// A runner gets no more tasks.
    pub(crate) fn runner_leaves(&mut self, runner: RankId, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.runner_leaves(runner);
        self.carry_out_tasks(changes, effects);
    }

    /// A runner has ended in order.
    pub(crate) fn runner_ended(&mut self, runner: RankId, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.runner_ended(runner);
        self.carry_out_tasks(changes, effects);
        self.report_anew(|_| true, effects);
    }

    /// There will be no runner of a class.
    pub(crate) fn no_runner(&mut self, class: TaskClass, why: &str, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.no_runner(class, why);
        self.carry_out_tasks(Some(changes), effects);
    }

    /// A process has ended: as a runner of tasks of this one, and as a caller of tasks that run here.
    pub(crate) fn end_tasks_of(&mut self, member: RankId, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.runner_died(member);
        self.carry_out_tasks(changes, effects);
        self.report_anew(|_| true, effects);
        let mut changes = Vec::new();
        self.task_gate.caller_ended(member, &mut changes);
        self.pass_tasks(changes, effects);
    }

    /// This process runs tasks.
    pub(crate) fn serve_tasks(&mut self, class: &TaskClass, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        self.task_gate.open(class, &mut changes);
        self.pass_tasks(changes, effects);
    }

    /// This process is told to end, and runs tasks.
    pub(crate) fn end_serving(&mut self, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        self.task_gate.end(&mut changes);
        self.pass_tasks(changes, effects);
    }

    /// A caller has sent a task.
    pub(crate) fn task_arrives(
        &mut self,
        from: RankId,
        call: CallNumber,
        task: TaskRequest,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        let mut changes = Vec::new();
        self.task_gate.arrive(from, call, task, carries, &mut changes);
        self.pass_tasks(changes, effects);
    }

    /// A caller needs the value of one of its tasks no more.
    pub(crate) fn cancel_task_of(&mut self, from: RankId, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        self.task_gate.cancel(from, call, &mut changes);
        self.pass_tasks(changes, effects);
    }

    /// A runner has ended a task of this process.
    pub(crate) fn task_ran(
        &mut self,
        from: RankId,
        answer: TaskAnswer,
        took: Span,
        effects: &mut Vec<MemberEffect>,
    ) {
        match self.task_calls.answered(from, answer, took) {
            Ok(changes) => self.carry_out_tasks(Some(changes), effects),
            Err(unknown) => unknown.carries.into_iter().for_each(|carried| self.release(carried, effects)),
        }
    }

    /// A task of this process waits at its runner for calls of its own.
    pub(crate) fn task_parked(&mut self, from: RankId, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.parked(from, call);
        self.carry_out_tasks(changes, effects);
    }

    /// A runner has started a task that this process wanted back.
    pub(crate) fn task_kept(&mut self, from: RankId, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.kept(from, call);
        self.carry_out_tasks(changes, effects);
    }

    /// A caller wants one of its tasks back.
    pub(crate) fn recall_task_of(&mut self, from: RankId, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        self.task_gate.recall(from, call, &mut changes);
        self.pass_tasks(changes, effects);
    }

    /// A runner will not start a task of this process.
    pub(crate) fn task_returned(&mut self, from: RankId, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        let changes = self.task_calls.returned(from, call);
        self.carry_out_tasks(changes, effects);
        self.report_anew(|asked| asked == call, effects);
    }

    pub(crate) fn carry_out_tasks(&mut self, changes: Option<ClassEffects>, effects: &mut Vec<MemberEffect>) {
        let Some((class, changes)) = changes else { return };
        self.in_order(effects, |member, effects| {
            changes.into_iter().for_each(|change| member.carry_out_task(&class, change, effects));
            member.update_all_needs(effects);
        });
    }

    fn carry_out_task(&mut self, class: &TaskClass, change: TaskEffect, effects: &mut Vec<MemberEffect>) {
        match change {
            TaskEffect::Run { to, call, task, carries } => {
                let carries = self.carry_to(to, &carries, effects);
                effects.push(MemberEffect::ToCallee { to, frame: ToCallee::Run { call, task, carries } });
            }
            TaskEffect::Recall { to, call } => {
                effects.push(MemberEffect::ToCallee { to, frame: ToCallee::Recall { call } });
            }
            TaskEffect::Cancel { to, call } => {
                effects.push(MemberEffect::ToCallee { to, frame: ToCallee::Cancel { call } });
            }
            TaskEffect::Finish { call, result, carries, task } => {
                if !self.end_remake(call, task.place.runner(), &result, &carries, effects) {
                    self.tell_lineage(class, &result, &task, effects);
                    self.end_call(call, result, carries, effects);
                }
                task.carries.into_iter().for_each(|carried| self.release(carried, effects));
            }
            TaskEffect::Want { runners } => {
                let class = class.clone();
                let frame = ToCoordinator::WantRunners { class, runners };
                effects.push(MemberEffect::ToCoordinator(frame));
            }
        }
    }

    pub(crate) fn pass_tasks(&mut self, changes: Vec<TaskGateEffect>, effects: &mut Vec<MemberEffect>) {
        for change in changes {
            match change {
                TaskGateEffect::Start { ticket, task, carries } => {
                    let TaskRequest { function, depth: _, arguments, needs, resume: _, store_as: _ } = task;
                    let start = MemberEffect::StartTask { ticket, function, arguments, needs, carries };
                    effects.push(start);
                }
                TaskGateEffect::Interrupt { ticket } => effects.push(MemberEffect::Interrupt { ticket }),
                TaskGateEffect::Drop { caller, call, carries } => {
                    let result = Err(CallError::Cancelled);
                    let frame = ToCaller::Ran { call, result, carries: Vec::new(), took: Span::ZERO };
                    self.answer_task(caller, frame, carries, effects);
                }
                TaskGateEffect::Return { caller, call, carries } => {
                    self.answer_task(caller, ToCaller::Returned { call }, carries, effects);
                }
                TaskGateEffect::Kept { caller, call } => {
                    self.answer_task(caller, ToCaller::Kept { call }, Vec::new(), effects);
                }
                TaskGateEffect::Parked { caller, call } => {
                    self.answer_task(caller, ToCaller::Parked { call }, Vec::new(), effects);
                }
                TaskGateEffect::Blocked { caller, call, needs } => {
                    self.answer_task(caller, ToCaller::Blocked { call, needs }, Vec::new(), effects);
                }
                TaskGateEffect::Pause { caller } => {
                    self.answer_task(caller, ToCaller::Paused, Vec::new(), effects);
                }
                TaskGateEffect::Resume { caller } => {
                    self.answer_task(caller, ToCaller::Resumed, Vec::new(), effects);
                }
                TaskGateEffect::Fail { caller, call, carries, error } => {
                    let (result, took) = (Err(error), Span::ZERO);
                    let frame = ToCaller::Ran { call, result, carries: Vec::new(), took };
                    self.answer_task(caller, frame, carries, effects);
                }
                TaskGateEffect::Report { needs } => {
                    effects.push(MemberEffect::ToCoordinator(ToCoordinator::Blocked { needs }));
                }
                TaskGateEffect::Rest { rest } => effects.push(MemberEffect::Rest { rest }),
                TaskGateEffect::Idle => effects.push(MemberEffect::ToCoordinator(ToCoordinator::Idle)),
                TaskGateEffect::Ended => effects.push(MemberEffect::End),
            }
        }
    }

    /// Sends a caller that has not ended a frame, and gives back the handles in the arguments of its task.
    pub(crate) fn answer_task(
        &mut self,
        to: RankId,
        frame: ToCaller,
        arguments: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        if self.admits(to) {
            effects.push(MemberEffect::ToCaller { to, frame });
        }
        arguments.into_iter().for_each(|carried| self.release(carried, effects));
    }
}
