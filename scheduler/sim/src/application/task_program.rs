//! The tasks that users' code calls: trees from mains, actors and other tasks.

use cohabit_application_core::{CallError, CallNumber, CallValue, HeldId, MemberEffect, TaskSpec, Ticket};
use cohabit_types::RankId;

use super::head::RunnerPurpose;
use super::object_process::HandleOwner;
use super::open_stream::OpenStream;
use super::payload::{Tag, decode, encode};
use super::process::ProcessCode;
use super::program::actors_among;
use super::task_plan::TaskPlan;
use super::task_process::OpenTask;
use super::world::{ApplicationWorld, ProgramPhase};

impl ApplicationWorld {
    /// A main or actor calls some trees of tasks.
    pub(super) fn call_tasks(&mut self, member: RankId) {
        let count = if self.random.chance(0.3) { self.random.between(2, 30) } else { 1 };
        for _ in 0..count {
            self.call_tree(member);
        }
        if let Some(process) = self.processes.get_mut(&member)
            && self.random.chance(0.4)
        {
            process.awaits = process.task_calls.last_key_value().map(|(call, _)| *call);
        }
    }

    pub(super) fn call_tree(&mut self, member: RankId) {
        if self.phase == ProgramPhase::Work && self.processes.contains_key(&member) {
            let seed = self.random.between(0, u64::MAX - 1);
            let height = self.random.between(0, 4);
            let carries = self.some_handles(member);
            self.call_task(member, TaskPlan::draw(seed, height), None, carries);
        }
    }

    /// A task calls the tasks of its plan, and perhaps an actor.
    pub(super) fn call_children(&mut self, member: RankId, ticket: Ticket) {
        let Some(task) = self.task(member, ticket) else { return };
        let (plan, handles) = (task.plan, task.handles.clone());
        for (number, child) in plan.children().into_iter().enumerate() {
            let carries: Vec<HeldId> =
                handles.iter().copied().filter(|_| self.random.chance(0.5)).take(2).collect();
            self.call_task(member, child, Some((ticket, number)), carries);
        }
        let actors = actors_among(&handles);
        if plan.calls_actor() && !actors.is_empty() && self.processes.contains_key(&member) {
            let actor = *self.random.pick(&actors);
            self.call_actor(member, actor, Some(ticket));
        }
        // Some calls are dropped before they have ended; then the task cannot have its value.
        if self.random.chance(0.05) {
            self.cancel_child(member, ticket);
        }
    }

    fn cancel_child(&mut self, member: RankId, ticket: Ticket) {
        let Some(process) = self.processes.get(&member) else { return };
        let mut children = process.task_calls.iter();
        let child = children.find(|(_, it)| it.caller.is_some_and(|(caller, _)| caller == ticket));
        if let Some((call, tag)) = child.map(|(call, it)| (*call, it.tag)) {
            self.cancel_task_call(member, call, tag);
        }
    }

    /// A call of a task is dropped, and its stream, if it has one.
    pub(super) fn cancel_task_call(&mut self, member: RankId, call: CallNumber, tag: Tag) {
        self.task_ledger.cancelled(tag);
        let mut effects = Vec::new();
        self.drop_stream(member, call, &mut effects);
        self.drive(member, |it, all| {
            all.append(&mut effects);
            it.core.cancel_task(call, all);
        });
    }

    fn call_task(
        &mut self,
        member: RankId,
        plan: TaskPlan,
        caller: Option<(Ticket, usize)>,
        carries: Vec<HeldId>,
    ) {
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        if !self.processes.contains_key(&member) {
            return;
        }
        let needs = self.some_needs(&carries);
        let by_reference = caller.is_none() && plan.items().is_none() && self.random.chance(0.3);
        let spec = TaskSpec {
            class: self.task_classes[plan.class].clone(),
            function: plan.function(),
            caller: caller.map(|(ticket, _)| ticket),
            retries: plan.retries(),
            on_error: plan.on_error(),
            arguments: encode(tag, &carries),
            needs: needs.clone(),
            carries: carries.clone(),
        };
        // The call may end, and the process too, before the effects are carried out.
        let mut effects = Vec::new();
        let process = self.process(member);
        let called = if by_reference {
            let called = process.core.run_task_for_reference(spec, &mut effects);
            called.map(|(call, object)| (call, Some(object)))
        } else {
            process.core.run_task(spec, &mut effects).map(|call| (call, None))
        };
        match called {
            Ok((call, object)) => {
                if let Some(object) = object {
                    self.objects.called(object, Some(tag));
                    self.keep_reference(member, call, object);
                }
                self.counters.streams += u64::from(plan.items().is_some());
                let process = self.process(member);
                let open = OpenTask { tag, caller, carries, needs };
                if plan.items().is_some() {
                    process.streams.insert(call, OpenStream::new(open.clone()));
                }
                process.task_calls.insert(call, open);
                if let Some((ticket, _)) = caller
                    && let Some(task) = process.tasks.get_mut(&ticket)
                {
                    task.open.insert(call);
                }
                self.counters.tasks += 1;
                self.task_ledger.called(tag, plan);
            }
            Err(CallError::Dependency(text)) if self.may_have_failed(&needs) => {
                if let Some(task) = caller.and_then(|(ticket, _)| self.task(member, ticket)) {
                    task.failure = Some(text);
                }
            }
            Err(error) => self.ledger.violated(format!("{member} may not call a task: {error}")),
        }
        self.drive(member, |_, all| all.append(&mut effects));
    }

    /// A main or actor drops one of its calls of tasks.
    pub(super) fn cancel_some_task(&mut self, member: RankId) {
        let calls: Vec<_> =
            self.process(member).task_calls.iter().map(|(call, it)| (*call, it.tag)).collect();
        if calls.is_empty() {
            return;
        }
        let (call, tag) = *self.random.pick(&calls);
        self.cancel_task_call(member, call, tag);
    }

    /// A call of a task has ended. `false` if it is no call of a task.
    pub(super) fn finish_task(
        &mut self,
        member: RankId,
        call: CallNumber,
        result: &Result<CallValue, CallError>,
        more: &mut Vec<MemberEffect>,
    ) -> bool {
        let Some(open) = self.process(member).task_calls.remove(&call) else { return false };
        self.counters.tasks_ended += 1;
        self.counters.task_values += u64::from(result.is_ok());
        self.counters.task_losses += u64::from(matches!(result, Err(CallError::Lost { .. })));
        self.counters.no_runners += u64::from(matches!(result, Err(CallError::NoRunner(_))));
        self.counters.cancelled_tasks += u64::from(*result == Err(CallError::Cancelled));
        let failed = self.may_have_failed(&open.needs);
        if let Some(violation) = self.task_ledger.finished(open.tag, &self.payload_of(result), failed) {
            self.ledger.violated(violation);
        }
        if self.end_stream(member, call, result) {
            return true;
        }
        let owner = self.owner_of_values(member, &open);
        let payload = self.take_value(member, result, owner, more);
        let result = match payload {
            Ok(_) if self.task_ledger.plan(open.tag).is_some_and(|plan| plan.items().is_some()) => {
                Err("its stream was dropped".to_owned())
            }
            Ok(payload) => Ok(decode(&payload).0.0),
            Err(error) => Err(error.to_string()),
        };
        self.task_call_ends(member, call, &open, result, more);
        true
    }

    /// Who keeps the handles in the value or the items of a task.
    pub(super) fn owner_of_values(&mut self, member: RankId, open: &OpenTask) -> HandleOwner {
        match (open.caller, self.process(member).code) {
            (Some((ticket, _)), _) => HandleOwner::Task(ticket),
            (None, ProcessCode::Main | ProcessCode::Actor) => HandleOwner::Process,
            (None, ProcessCode::Tasks | ProcessCode::Store) => HandleOwner::Nobody,
        }
    }

    /// The caller of a task learns how it has ended.
    pub(super) fn task_call_ends(
        &mut self,
        member: RankId,
        call: CallNumber,
        open: &OpenTask,
        result: Result<u64, String>,
        more: &mut Vec<MemberEffect>,
    ) {
        let Some((ticket, number)) = open.caller else { return };
        if let Some(task) = self.task(member, ticket) {
            match result {
                Ok(value) => _ = task.values.insert(number, value),
                Err(error) => task.failure = Some(error),
            }
        }
        self.wake_task(member, ticket, call, more);
    }

    /// What waits although nothing happens any more, and need not: tasks that get by without GPUs, or all if
    /// no actor has any and no task needs a reference of others.
    pub(super) fn find_waiting_task(&self) -> Option<String> {
        let actors_hold_gpus = self.head.jobs.values().any(|job| {
            let is_actor = matches!(job.request.purpose, RunnerPurpose::Gang(_));
            is_actor && job.ended.is_none() && job.request.gpus.0 > 0
        });
        let may_wait = actors_hold_gpus || self.waits_for_references();
        self.processes.iter().find_map(|(member, process)| {
            let waiting = process.task_calls.values().find(|open| {
                let plan = self.task_ledger.plan(open.tag);
                let needs_none = plan.is_some_and(|plan| plan.needs_no_gpus()) && open.needs.is_empty();
                let gets_by = needs_none && !self.has_needs_below(open.tag);
                !may_wait || gets_by
            });
            let unread = process.streams.iter().find(|(call, _)| !process.task_calls.contains_key(call));
            let tag = waiting.map(|open| open.tag).or(unread.map(|(_, stream)| stream.tag()))?;
            Some(format!("task {} of {member} waits for ever{}", tag.0, self.chain_below(tag)))
        })
    }

    /// Whether calls of running tasks are held back until references are known. Who keeps GPUs meanwhile is
    /// not told if these need them.
    fn waits_for_references(&self) -> bool {
        self.processes.values().any(|process| {
            let nested = process.task_calls.values().filter(|open| open.caller.is_some());
            let mut needs = nested.flat_map(|open| &open.needs);
            needs.any(|object| process.core.object_value(*object).is_none())
        })
    }
}
