//! All tasks that one process has called and that have not ended: their classes, bounds and estimates.

use std::collections::BTreeMap;

use cohabit_types::{RankId, Span};

use crate::ended_tasks::EndedTasks;
use crate::errors::CallError;
use crate::held::HeldId;
use crate::ids::{CallNumber, NodeNumber, ObjectId, Ticket};
use crate::needed_bytes::NeededBytes;
use crate::queued_task::{Place, QueuedTask, Recall, Turn, Wish};
use crate::stream_window::ItemTotal;
use crate::task_bounds::TaskBounds;
use crate::task_class::{TaskClass, TaskSpec};
use crate::task_estimates::TaskEstimates;
use crate::task_queue::{TaskAnswer, TaskEffect, TaskQueue};
use crate::task_wait::{BlockedCalls, WaitChanges};

/// The calling side of a process.
#[derive(Debug)]
pub(crate) struct TaskCalls {
    pub(crate) classes: BTreeMap<TaskClass, TaskQueue>,
    calls: BTreeMap<CallNumber, TaskClass>,
    /// Tasks that need what is not known yet. They count for the bounds alone.
    held_back: BTreeMap<CallNumber, HeldBackTask>,
    bounds: TaskBounds,
    estimates: TaskEstimates,
    blocked: BlockedCalls,
    pub(crate) ended: EndedTasks,
}

#[derive(Debug)]
struct HeldBackTask {
    depth: u32,
    spec: TaskSpec,
    /// The lost object that it makes again.
    store_as: Option<ObjectId>,
}

/// A change of one class, and what it brings about.
pub(crate) type ClassEffects = (TaskClass, Vec<TaskEffect>);

impl TaskCalls {
    pub(crate) const fn new() -> TaskCalls {
        TaskCalls {
            classes: BTreeMap::new(),
            calls: BTreeMap::new(),
            held_back: BTreeMap::new(),
            bounds: TaskBounds::new(),
            estimates: TaskEstimates::new(),
            blocked: BlockedCalls::new(),
            ended: EndedTasks::new(),
        }
    }

    /// Whether every task has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.held_back.is_empty()
    }

    pub(crate) fn has_room(&self, caller: Option<Ticket>, bytes: usize) -> bool {
        self.bounds.has_room(caller, bytes)
    }

    /// A new task at this depth; there has to be room for it.
    pub(crate) fn push(
        &mut self,
        call: CallNumber,
        depth: u32,
        spec: TaskSpec,
        spread: NeededBytes,
    ) -> ClassEffects {
        self.bounds.add(spec.caller, spec.arguments.len());
        self.enqueue(call, HeldBackTask { depth, spec, store_as: None }, spread)
    }

    /// A task that makes a lost object again, beyond all bounds.
    pub(crate) fn push_remake(
        &mut self,
        call: CallNumber,
        object: ObjectId,
        spec: TaskSpec,
        spread: NeededBytes,
    ) -> ClassEffects {
        self.bounds.add(spec.caller, spec.arguments.len());
        self.enqueue(call, HeldBackTask { depth: 0, spec, store_as: Some(object) }, spread)
    }

    /// As `push_remake`, if it needs what is not known yet.
    pub(crate) fn hold_back_remake(&mut self, call: CallNumber, object: ObjectId, spec: TaskSpec) {
        self.bounds.add(spec.caller, spec.arguments.len());
        self.held_back.insert(call, HeldBackTask { depth: 0, spec, store_as: Some(object) });
    }

    /// What a task needs that is held back.
    pub(crate) fn held_back_needs(&self, call: CallNumber) -> Option<&[ObjectId]> {
        self.held_back.get(&call).map(|task| &task.spec.needs[..])
    }

    /// A new task that needs what is not known yet; there has to be room for it.
    pub(crate) fn hold_back(&mut self, call: CallNumber, depth: u32, spec: TaskSpec) {
        self.bounds.add(spec.caller, spec.arguments.len());
        spec.caller.into_iter().for_each(|caller| self.blocked.hold_back(caller, call));
        self.held_back.insert(call, HeldBackTask { depth, spec, store_as: None });
    }

    /// A task that was held back may be sent.
    pub(crate) fn admit(&mut self, call: CallNumber, spread: NeededBytes) -> Option<ClassEffects> {
        let task = self.held_back.remove(&call)?;
        task.spec.caller.into_iter().for_each(|caller| self.blocked.admit(caller, call));
        Some(self.enqueue(call, task, spread))
    }

    /// A task that was held back will not be sent: the handles in its arguments.
    pub(crate) fn take_held_back(&mut self, call: CallNumber) -> Option<Vec<HeldId>> {
        let HeldBackTask { spec, .. } = self.held_back.remove(&call)?;
        self.bounds.remove(spec.caller, spec.arguments.len());
        spec.caller.into_iter().for_each(|caller| {
            self.blocked.admit(caller, call);
            self.blocked.ended(caller);
        });
        Some(spec.carries)
    }

    /// The tasks that are held back, with their depths.
    pub(crate) fn held_back(&self) -> impl Iterator<Item = (CallNumber, u32, &TaskSpec)> {
        self.held_back.iter().map(|(call, task)| (*call, task.depth, &task.spec))
    }

    fn enqueue(&mut self, call: CallNumber, task: HeldBackTask, spread: NeededBytes) -> ClassEffects {
        let HeldBackTask { depth, spec, store_as } = task;
        // Others may wait for a lost object.
        let turn = if store_as.is_some() { Turn::Again } else { Turn::First };
        let TaskSpec { class, function, caller, retries, on_error, arguments, needs, carries } = spec;
        caller.into_iter().for_each(|caller| self.blocked.called(caller));
        self.calls.insert(call, class.clone());
        let task = QueuedTask {
            function,
            depth,
            arguments,
            needs,
            carries,
            caller,
            on_error,
            retries,
            ends: 0,
            wish: Wish::Value,
            turn,
            place: Place::Waiting,
            blocked: None,
            recall_at_send: Recall::None,
            stream: None,
            store_as,
            spread,
        };
        self.change(class, |queue, _, _| queue.push(call, task))
    }

    pub(crate) fn cancel(&mut self, call: CallNumber) -> Option<ClassEffects> {
        let class = self.calls.get(&call)?.clone();
        Some(self.change(class, |queue, _, effects| queue.cancel(call, effects)))
    }

    /// A runner has answered. The answer comes back if the runner has no such task.
    pub(crate) fn answered(
        &mut self,
        from: RankId,
        answer: TaskAnswer,
        took: Span,
    ) -> Result<ClassEffects, TaskAnswer> {
        let call = answer.call;
        let function = self.class_of(call).and_then(|(_, queue)| queue.function_at(from, call));
        let (Some(function), Some(class)) = (function, self.calls.get(&call).cloned()) else {
            return Err(answer);
        };
        match answer.result {
            Ok(_) | Err(CallError::Failed(_) | CallError::Panicked(_)) => {
                self.estimates.observe(function, took);
            }
            Err(
                CallError::Restarted
                | CallError::Ended(_)
                | CallError::Lost { .. }
                | CallError::NoRunner(_)
                | CallError::Deadlock(_)
                | CallError::Dependency(_)
                | CallError::ObjectLost(_)
                | CallError::StoreFull(_)
                | CallError::TimedOut(_)
                | CallError::Cancelled
                | CallError::Full
                | CallError::Refused(_),
            ) => {}
        }
        let effects = self.change(class, |queue, _, effects| queue.answered(answer, effects));
        self.ended.took(call, took);
        Ok(effects)
    }

    /// An item of a stream has arrived. Whether it is the runner's to send and somebody waits for it.
    pub(crate) fn item(&mut self, from: RankId, call: CallNumber, number: u64, bytes: u64) -> bool {
        self.queue_of(call).is_some_and(|queue| queue.item(from, call, number, bytes))
    }

    /// The first unread item of a stream was read: who is told of how many now.
    pub(crate) fn read(&mut self, call: CallNumber) -> Option<(RankId, ItemTotal)> {
        self.queue_of(call)?.read(call)
    }

    pub(crate) fn parked(&mut self, from: RankId, call: CallNumber) -> Option<ClassEffects> {
        let class = self.calls.get(&call)?.clone();
        Some(self.change(class, |queue, _, _| queue.parked(from, call)))
    }

    pub(crate) fn kept(&mut self, from: RankId, call: CallNumber) -> Option<ClassEffects> {
        let class = self.calls.get(&call)?.clone();
        Some(self.change(class, |queue, _, _| queue.kept(from, call)))
    }

    pub(crate) fn returned(&mut self, from: RankId, call: CallNumber) -> Option<ClassEffects> {
        let class = self.calls.get(&call)?.clone();
        Some(self.change(class, |queue, _, effects| queue.returned(from, call, effects)))
    }

    pub(crate) fn runner_joined(
        &mut self,
        class: TaskClass,
        runner: RankId,
        node: NodeNumber,
    ) -> ClassEffects {
        self.change(class, |queue, _, _| queue.join(runner, node))
    }

    pub(crate) fn runner_leaves(&mut self, runner: RankId) -> Option<ClassEffects> {
        let class = self.class_with(runner)?;
        Some(self.change(class, |queue, estimates, effects| queue.lease_ends(runner, estimates, effects)))
    }

    pub(crate) fn runner_ended(&mut self, runner: RankId) -> Option<ClassEffects> {
        let class = self.class_with(runner)?;
        Some(self.change(class, |queue, _, effects| queue.all_returned(runner, effects)))
    }

    pub(crate) fn runner_died(&mut self, runner: RankId) -> Option<ClassEffects> {
        let class = self.class_with(runner)?;
        Some(self.change(class, |queue, _, effects| queue.runner_died(runner, effects)))
    }

    pub(crate) fn no_runner(&mut self, class: TaskClass, why: &str) -> ClassEffects {
        self.change(class, |queue, estimates, effects| queue.no_runner(why, estimates, effects))
    }

    /// A runner takes no tasks for now.
    pub(crate) fn runner_paused(&mut self, runner: RankId) -> Option<ClassEffects> {
        let class = self.class_with(runner)?;
        Some(self.change(class, |queue, _, _| queue.pause(runner)))
    }

    /// A runner takes tasks again.
    pub(crate) fn runner_resumed(&mut self, runner: RankId) -> Option<ClassEffects> {
        let class = self.class_with(runner)?;
        Some(self.change(class, |queue, _, _| queue.resume(runner)))
    }

    /// The runner of a task says what the task needs before it goes on.
    pub(crate) fn call_blocked(
        &mut self,
        from: RankId,
        call: CallNumber,
        needs: Vec<TaskClass>,
    ) -> Option<ClassEffects> {
        let class = self.calls.get(&call)?.clone();
        Some(self.change(class, |queue, _, _| queue.blocked(from, call, needs)))
    }

    /// A task that no runner has would wait for ever.
    pub(crate) fn fail(&mut self, call: CallNumber, text: &str) -> Option<ClassEffects> {
        let class = self.calls.get(&call)?.clone();
        let error = deadlock(&class, text);
        Some(self.change(class, |queue, _, effects| queue.fail(call, error, effects)))
    }

    /// What a running task needs that waits for all of its calls. `waits_behind` says of a call that is held
    /// back whether all that it waits for are calls of the same task: it is blocked if they are.
    pub(crate) fn needs(&self, caller: Ticket, waits_behind: impl Fn(CallNumber) -> bool) -> Vec<TaskClass> {
        self.blocked.needs(caller, self.bounds.unended(Some(caller)), waits_behind)
    }

    /// The running task that has called a task.
    pub(crate) fn caller_of(&self, call: CallNumber) -> Option<Ticket> {
        match self.held_back.get(&call) {
            Some(task) => task.spec.caller,
            None => self.class_of(call).and_then(|(_, queue)| queue.caller_of(call)),
        }
    }

    /// Who waits for a task learns that it will have no value.
    pub(crate) fn wake_caller_of(&mut self, call: CallNumber) {
        self.caller_of(call).into_iter().for_each(|caller| self.blocked.ended(caller));
    }

    /// The calls of a running task that are blocked, with their runners if they were sent.
    pub(crate) fn blocked_calls(&self, caller: Ticket) -> impl Iterator<Item = (CallNumber, Option<RankId>)> {
        self.classes.values().flat_map(move |queue| queue.blocked_calls(caller))
    }

    /// The running tasks whose calls have changed since this was asked before.
    pub(crate) fn take_wait_changes(&mut self) -> WaitChanges {
        self.blocked.take_changes()
    }

    fn class_of(&self, call: CallNumber) -> Option<(&TaskClass, &TaskQueue)> {
        self.classes.get_key_value(self.calls.get(&call)?)
    }

    fn queue_of(&mut self, call: CallNumber) -> Option<&mut TaskQueue> {
        self.classes.get_mut(self.calls.get(&call)?)
    }

    /// The class of a runner that is known. There are few classes, and runners seldom come and go.
    fn class_with(&self, runner: RankId) -> Option<TaskClass> {
        let known = self.classes.iter().find(|(_, queue)| queue.knows(runner));
        known.map(|(class, _)| class.clone())
    }

    /// Changes a class, sends what can be sent then, and forgets what has ended.
    fn change(
        &mut self,
        class: TaskClass,
        change: impl FnOnce(&mut TaskQueue, &TaskEstimates, &mut Vec<TaskEffect>),
    ) -> ClassEffects {
        let queue = self.classes.entry(class.clone()).or_insert_with(|| TaskQueue::new(class.clone()));
        let mut effects = Vec::new();
        change(queue, &self.estimates, &mut effects);
        queue.advance(&self.estimates, &mut effects);
        let is_unused = queue.is_unused();
        queue.take_needs_changes().into_iter().for_each(|change| self.blocked.change(change));
        for effect in &effects {
            if let TaskEffect::Finish { call, result, carries: _, task } = effect {
                self.ended.push(*call, task, result);
                self.calls.remove(call);
                self.bounds.remove(task.caller, task.arguments.len());
                task.caller.into_iter().for_each(|caller| self.blocked.ended(caller));
            }
        }
        if is_unused {
            self.classes.remove(&class);
        }
        (class, effects)
    }
}

/// The error of a task that would wait for ever. `text` says what there is.
pub(crate) fn deadlock(class: &TaskClass, text: &str) -> CallError {
    let gpus = class.gpus;
    CallError::Deadlock(format!(
        "the task would wait for ever: it needs {gpus} GPUs, and {text}. End a task before the next one is \
         awaited that needs GPUs, let tasks claim less, or let the application have more (max_gpus of main, \
         or a node with more GPUs)"
    ))
}
