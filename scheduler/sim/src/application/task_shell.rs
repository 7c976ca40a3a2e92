//! The shell of a process that runs tasks: it carries out what its core says and runs the users' functions.

use bytes::Bytes;
use cohabit_application_core::{CallError, CallNumber, CallValue, HeldId, MemberEffect, ObjectId, Ticket};
use cohabit_types::{RankId, Span};

use super::event::ApplicationEvent;
use super::object_process::{HandleOwner, StorePurpose};
use super::payload::{Tag, decode, encode};
use super::process::ProcessCode;
use super::task_ledger::StartKind;
use super::task_process::{SimulatedTask, TaskStage, TaskState};
use super::world::{ApplicationWorld, ProgramPhase};

/// How long a runner waits for a task before it says that it is idle.
const REST: (Span, Span) = (Span::from_secs(1), Span::from_secs(5));
/// How long a process waits for a task that was interrupted.
const ABANDON: (Span, Span) = (Span::from_secs(4), Span::from_secs(6));
/// How often a process that ends looks whether all that it has sent has arrived.
const SETTLE: (Span, Span) = (Span::from_millis(1), Span::from_millis(100));

impl ApplicationWorld {
    pub(super) fn start_task(
        &mut self,
        member: RankId,
        ticket: Ticket,
        arguments: &Bytes,
        needs: &[ObjectId],
        more: &mut Vec<MemberEffect>,
    ) {
        let ((tag, carried), now) = (decode(arguments), self.now);
        let kind = if self.process(member).core.store_as(ticket).is_some() {
            StartKind::Remake
        } else if self.was_written_off(member) {
            StartKind::Unnoticed
        } else {
            StartKind::Ordinary
        };
        let active = self.process(member).tasks.values().filter(|it| it.is_active(now)).count();
        self.counters.task_starts += 1;
        match self.task_ledger.started(tag, member, active, kind) {
            Ok(again) => self.counters.task_repeats += u64::from(again),
            Err(violation) => self.ledger.violated(violation),
        }
        let Some(plan) = self.task_ledger.plan(tag) else {
            self.ledger.violated(format!("{member} starts a task that nobody called: {}", tag.0));
            return;
        };
        let mut task = SimulatedTask::new(tag, plan);
        if plan.passes_handles() {
            let passes = |held: &HeldId| held.object().is_none_or(|object| needs.contains(&object));
            let core = &mut self.process(member).core;
            task.value_handles = carried.into_iter().filter(passes).filter(|held| core.hold(*held)).collect();
        }
        self.process(member).tasks.insert(ticket, task);
        self.take_handles(member, arguments, HandleOwner::Task(ticket), more);
        self.task_goes_on_soon(member, ticket);
    }

    pub(super) fn rest(&mut self, member: RankId, rest: u64) {
        self.after(REST, ApplicationEvent::Rested { member, rest });
    }

    /// The function of a task does its next step.
    pub(super) fn step_task(&mut self, member: RankId, ticket: Ticket) {
        let Some(task) = self.task(member, ticket).filter(|it| it.state == TaskState::Active) else {
            return;
        };
        let (stage, interrupted) = (task.stage, task.interrupted);
        if interrupted && self.random.chance(0.8) {
            self.drive_end(member, ticket, Err(CallError::Cancelled));
            return;
        }
        match stage {
            TaskStage::Begun => {
                if let Some(task) = self.task(member, ticket) {
                    task.stage = TaskStage::Called;
                }
                if self.phase == ProgramPhase::Work {
                    self.call_children(member, ticket);
                }
                if self.random.chance(0.2) {
                    self.task_goes_on_soon(member, ticket);
                } else {
                    self.make_or_end(member, ticket);
                }
            }
            TaskStage::Called => self.make_or_end(member, ticket),
        }
    }

    pub(super) fn wait_or_end(&mut self, member: RankId, ticket: Ticket) {
        let hasty = self.random.chance(0.5);
        let Some(task) = self.task(member, ticket) else { return };
        if task.open.is_empty() || (task.failure.is_some() && hasty) {
            let result = self.draw_result(member, ticket);
            self.end_or_store(member, ticket, result);
        } else if task.interrupted {
            self.drive_end(member, ticket, Err(CallError::Cancelled));
        } else {
            task.state = TaskState::Waiting;
            let wait = self.waits_for(member, ticket);
            self.drive(member, |it, effects| it.core.task_waits(ticket, wait, effects));
        }
    }

    /// How a task ends that has done everything, or has failed before.
    fn draw_result(&mut self, member: RankId, ticket: Ticket) -> Result<Bytes, CallError> {
        let kind = self.random.fraction();
        let value_carries = self.random.chance(0.3);
        let Some(task) = self.task(member, ticket) else { return Err(CallError::Cancelled) };
        let handles = task.handles.clone();
        let handles = if value_carries { self.known_among(member, handles) } else { Vec::new() };
        let Some(task) = self.task(member, ticket) else { return Err(CallError::Cancelled) };
        let values: Vec<u64> = task.values.values().copied().collect();
        match &task.failure {
            Some(text) => Err(CallError::Failed(format!("task {}: {text}", task.tag.0))),
            None if kind < 0.03 => Err(CallError::Failed(format!("error {}", task.tag.0))),
            None if kind < 0.05 => Err(CallError::Panicked(format!("panic {}", task.tag.0))),
            None if task.plan.items().is_some() => Ok(Bytes::new()),
            None if values.len() < task.plan.children().len() => {
                Err(CallError::Failed(format!("task {} has not called its tasks", task.tag.0)))
            }
            None => Ok(encode(Tag(task.plan.combine(&values)), &handles)),
        }
    }

    /// A task ends, perhaps after it has put its value into the store.
    fn end_or_store(&mut self, member: RankId, ticket: Ticket, result: Result<Bytes, CallError>) {
        match result {
            Ok(payload) if !payload.is_empty() && self.must_store(member, ticket) => {
                let Some(task) = self.task(member, ticket) else { return };
                task.state = TaskState::Storing;
                let carries = task.value_handles.clone();
                let payload = encode(decode(&payload).0, &carries);
                self.begin_store(member, payload, carries, StorePurpose::Task(ticket));
            }
            result => self.drive_end(member, ticket, result),
        }
    }

    fn must_store(&mut self, member: RankId, ticket: Ticket) -> bool {
        self.random.chance(self.storing) || self.process(member).core.store_as(ticket).is_some()
    }

    pub(super) fn drive_end(&mut self, member: RankId, ticket: Ticket, result: Result<Bytes, CallError>) {
        let mut effects = Vec::new();
        let carries = result.as_ref().map(|value| decode(value).1).unwrap_or_default();
        self.end_task(member, ticket, result.map(CallValue::Inline), carries, &mut effects);
        self.drive(member, |_, all| all.append(&mut effects));
    }

    /// A task ends; calls of it that have not ended are dropped, and its handles.
    pub(super) fn end_task(
        &mut self,
        member: RankId,
        ticket: Ticket,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        more: &mut Vec<MemberEffect>,
    ) {
        let Some(task) = self.process(member).tasks.remove(&ticket) else { return };
        let took = self.random.span(match task.plan.function() {
            0 => (Span::ZERO, Span::from_micros(10)),
            1 => (Span::from_micros(1), Span::from_micros(400)),
            2 => (Span::from_micros(400), Span::from_millis(5)),
            _ => (Span::from_millis(20), Span::from_millis(300)),
        });
        let process = self.process(member);
        let (mut tasks, mut calls) = (Vec::new(), Vec::new());
        for call in &task.open {
            if let Some(open) = process.task_calls.get(call) {
                tasks.push(open.tag);
                process.core.cancel_task(*call, more);
            } else if let Some((actor, tag)) = process.calls.get(call).copied() {
                calls.push(tag);
                process.core.cancel(actor, *call, more);
            }
        }
        process.core.task_ended(ticket, result.clone(), carries, took, more);
        for held in task.handles.into_iter().chain(task.value_handles) {
            process.core.release(held, more);
        }
        for call in task.open {
            self.drop_stream(member, call, more);
        }
        tasks.into_iter().for_each(|tag| self.task_ledger.cancelled(tag));
        calls.into_iter().for_each(|tag| self.ledger.cancelled(tag));
        let outcome = self.payload_of(&result);
        self.task_ledger.outcome(task.tag, member, outcome);
    }

    /// The future of a task is dropped at its next await, if it has one.
    pub(super) fn interrupt_task(&mut self, member: RankId, ticket: Ticket, more: &mut Vec<MemberEffect>) {
        let is_stuck = self.random.chance(0.1);
        self.disturbed_at = self.now;
        let Some(task) = self.task(member, ticket) else { return };
        if task.state == TaskState::Waiting {
            self.end_task(member, ticket, Err(CallError::Cancelled), Vec::new(), more);
            return;
        }
        task.interrupted = true;
        if is_stuck && task.state == TaskState::Active {
            task.state = TaskState::Stuck;
            self.after(ABANDON, ApplicationEvent::Abandon { member, ticket });
        }
    }

    /// A task has not ended although it was interrupted: the process ends without it.
    pub(super) fn abandon(&mut self, member: RankId, ticket: Ticket) {
        if self.task(member, ticket).is_some() {
            self.counters.abandoned += 1;
            self.drive(member, |it, effects| it.core.abandon(effects));
            self.after(SETTLE, ApplicationEvent::Settle { member, code: 1 });
        }
    }

    /// A call of this process has ended; its caller goes on.
    pub(super) fn wake_task(
        &mut self,
        member: RankId,
        ticket: Ticket,
        call: CallNumber,
        more: &mut Vec<MemberEffect>,
    ) {
        let Some(task) = self.task(member, ticket) else { return };
        task.open.remove(&call);
        self.poll_task(member, ticket, more);
    }

    /// A task goes on, if it waits.
    pub(super) fn poll_task(&mut self, member: RankId, ticket: Ticket, more: &mut Vec<MemberEffect>) {
        let now = self.now;
        let Some(task) = self.task(member, ticket) else { return };
        if task.state == TaskState::Waiting {
            (task.state, task.went_on) = (TaskState::Active, Some(now));
            self.process(member).core.task_goes_on(ticket, more);
            self.task_goes_on_soon(member, ticket);
        }
    }

    pub(super) fn task(&mut self, member: RankId, ticket: Ticket) -> Option<&mut SimulatedTask> {
        self.processes.get_mut(&member)?.tasks.get_mut(&ticket)
    }

    /// A process was told to end.
    pub(super) fn end_process(&mut self, member: RankId) {
        let process = self.process(member);
        let (code, tasks) = (process.code, process.tasks.len());
        if code == ProcessCode::Tasks && tasks > 0 {
            self.ledger.violated(format!("{member} ends with {tasks} tasks"));
        }
        // The end of an actor that hangs is waited for in vain.
        if code == ProcessCode::Tasks || self.random.chance(0.9) {
            let code = self.process(member).exit_code;
            self.after(SETTLE, ApplicationEvent::Settle { member, code });
        }
    }

    /// A process ends with an error. It calls no code of the user for that, so it does not hang.
    pub(super) fn fail_process(&mut self, member: RankId) {
        self.after(SETTLE, ApplicationEvent::Settle { member, code: 1 });
    }

    /// A process exits as soon as all that it has sent has arrived.
    pub(super) fn settle(&mut self, member: RankId, code: i32) {
        if self.unacknowledged_of(member) == 0 {
            self.kill(member, code);
        } else if self.processes.contains_key(&member) {
            self.after(SETTLE, ApplicationEvent::Settle { member, code });
        }
    }

    fn task_goes_on_soon(&mut self, member: RankId, ticket: Ticket) {
        self.method_ends_soon(ApplicationEvent::TaskStep { member, ticket });
    }
}
