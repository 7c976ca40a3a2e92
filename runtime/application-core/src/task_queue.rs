//! The tasks of one class that one process has called, and the runners that it knows.
//!
//! A task waits until a runner has room in its window, is sent to it, and ends with an answer. A runner that
//! ends costs each task that it had got a retry; a task that comes back unstarted costs none.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{RankId, Span};

use crate::errors::CallError;
use crate::frames::TaskRequest;
use crate::held::HeldId;
use crate::ids::{CallNumber, NodeNumber, Ticket};
use crate::object_value::CallValue;
use crate::queued_task::{Place, QueuedTask, Recall, Retry, Turn, WaitingKey, Wish};
use crate::runner_want::RunnerWant;
use crate::stream_reader::StreamReader;
use crate::stream_window::ItemTotal;
use crate::task_class::{OnTaskError, TaskClass};
use crate::task_estimates::TaskEstimates;
use crate::task_leases::{Room, TaskLeases};
use crate::task_load::TaskLoad;
use crate::task_wait::NeedsChange;

/// The unended tasks of a class.
#[derive(Debug)]
pub(crate) struct TaskQueue {
    class: TaskClass,
    tasks: BTreeMap<CallNumber, QueuedTask>,
    waiting: BTreeSet<WaitingKey>,
    leases: TaskLeases,
    load: TaskLoad,
    want: RunnerWant,
    /// How many recalls were not answered.
    recalls: usize,
    /// What calls need otherwise than before.
    needs_changes: Vec<NeedsChange>,
}

/// What a change brings about, in order.
#[derive(Debug)]
pub(crate) enum TaskEffect {
    /// Send the task.
    Run { to: RankId, call: CallNumber, task: TaskRequest, carries: Vec<HeldId> },
    /// Ask for a task back that was sent.
    Recall { to: RankId, call: CallNumber },
    /// Ask for the end of a task that was sent.
    Cancel { to: RankId, call: CallNumber },
    /// The task has ended, with the handles in its value.
    Finish { call: CallNumber, result: Result<CallValue, CallError>, carries: Vec<HeldId>, task: QueuedTask },
    /// The coordinator is told how many runners are wanted.
    Want { runners: u32 },
}

/// The answer of a runner.
#[derive(Debug)]
pub(crate) struct TaskAnswer {
    pub(crate) call: CallNumber,
    pub(crate) result: Result<CallValue, CallError>,
    pub(crate) carries: Vec<HeldId>,
}

impl TaskQueue {
    pub(crate) const fn new(class: TaskClass) -> TaskQueue {
        TaskQueue {
            class,
            tasks: BTreeMap::new(),
            waiting: BTreeSet::new(),
            leases: TaskLeases::new(),
            load: TaskLoad::new(),
            want: RunnerWant::new(),
            recalls: 0,
            needs_changes: Vec::new(),
        }
    }

    /// Whether nothing would be lost with it: no task, no runner, and the coordinator knows of no want.
    pub(crate) fn is_unused(&self) -> bool {
        self.tasks.is_empty() && self.leases.is_empty() && self.want.is_nothing()
    }

    /// All of them, by their calls.
    pub(crate) fn tasks(&self) -> impl ExactSizeIterator<Item = (CallNumber, &QueuedTask)> {
        self.tasks.iter().map(|(call, task)| (*call, task))
    }

    /// Whether the coordinator has named this runner.
    pub(crate) fn knows(&self, runner: RankId) -> bool {
        self.leases.knows(runner)
    }

    /// The function of a task that a runner has got.
    pub(crate) fn function_at(&self, runner: RankId, call: CallNumber) -> Option<u32> {
        self.tasks.get(&call).filter(|task| task.place.runner() == Some(runner)).map(|task| task.function)
    }

    /// A new task, which waits.
    pub(crate) fn push(&mut self, call: CallNumber, task: QueuedTask) {
        self.load.add(task.function);
        self.waiting.insert(task.waiting_key(call));
        self.tasks.insert(call, task);
        self.note_needs(call, Vec::new());
    }

    /// Nobody waits for its value any more. A task that was sent ends with its answer.
    pub(crate) fn cancel(&mut self, call: CallNumber, effects: &mut Vec<TaskEffect>) {
        let Some(task) = self.tasks.get_mut(&call).filter(|task| task.wish == Wish::Value) else { return };
        task.wish = Wish::End;
        match task.place {
            Place::Waiting => self.finish(call, Err(CallError::Cancelled), Vec::new(), effects),
            Place::InFlight { at, .. } | Place::Parked { at } => {
                effects.push(TaskEffect::Cancel { to: at, call });
            }
        }
    }

    /// A task that was with a runner has ended there.
    pub(crate) fn answered(&mut self, answer: TaskAnswer, effects: &mut Vec<TaskEffect>) {
        let TaskAnswer { call, result, carries } = answer;
        let Some(task) = self.tasks.get_mut(&call) else { return };
        let failed = matches!(result, Err(CallError::Failed(_) | CallError::Panicked(_)));
        if failed && task.on_error == OnTaskError::Retry && task.retry() == Retry::Granted {
            self.move_to(call, Place::Waiting);
        } else {
            self.finish(call, result, carries, effects);
        }
    }

    /// An item has come from a runner. Whether that runner has the task and somebody waits for it.
    pub(crate) fn item(&mut self, from: RankId, call: CallNumber, number: u64, bytes: u64) -> bool {
        let task = self.tasks.get_mut(&call).filter(|task| task.place.runner() == Some(from));
        let Some(task) = task.filter(|task| task.wish == Wish::Value) else { return false };
        task.stream.get_or_insert_with(|| Box::new(StreamReader::new())).arrive(number, bytes);
        true
    }

    /// The first unread item of a task was read: what its runner is told now.
    pub(crate) fn read(&mut self, call: CallNumber) -> Option<(RankId, ItemTotal)> {
        let task = self.tasks.get_mut(&call)?;
        let credit = task.stream.as_mut()?.read()?;
        // A task without a runner goes on from what was read.
        Some((task.place.runner()?, credit))
    }

    /// A task waits at its runner for calls of its own.
    pub(crate) fn parked(&mut self, from: RankId, call: CallNumber) {
        let place = self.tasks.get(&call).map(|task| task.place);
        if matches!(place, Some(Place::InFlight { at, .. }) if at == from) {
            self.move_to(call, Place::Parked { at: from });
        }
    }

    /// A task that was recalled has started.
    pub(crate) fn kept(&mut self, from: RankId, call: CallNumber) {
        let Some(task) = self.tasks.get_mut(&call) else { return };
        if let Place::InFlight { at, work, recall: Recall::Asked } = task.place
            && at == from
        {
            self.recalls -= 1;
            task.place = Place::InFlight { at, work, recall: Recall::Kept };
        }
    }

    /// A runner has not started a task: it was recalled, or the runner takes no more.
    pub(crate) fn returned(&mut self, from: RankId, call: CallNumber, effects: &mut Vec<TaskEffect>) {
        let Some(QueuedTask { place, recall_at_send, .. }) = self.tasks.get(&call) else { return };
        let was_recalled = matches!(place, Place::InFlight { recall: Recall::Asked, .. });
        let recall_at_send = if was_recalled {
            self.leases.put_last(from);
            Recall::Moved
        } else if self.leases.is_paused(from) {
            *recall_at_send
        } else {
            self.leave(from);
            Recall::None
        };
        let Some(task) = self.tasks.get_mut(&call).filter(|task| task.place.runner() == Some(from)) else {
            return;
        };
        task.turn = Turn::Again;
        task.recall_at_send = recall_at_send;
        match task.wish {
            Wish::Value => self.move_to(call, Place::Waiting),
            Wish::End => self.finish(call, Err(CallError::Cancelled), Vec::new(), effects),
        }
    }

    /// A runner has ended after it had answered everything that it started.
    pub(crate) fn all_returned(&mut self, runner: RankId, effects: &mut Vec<TaskEffect>) {
        for call in self.leases.calls(runner) {
            self.returned(runner, call, effects);
        }
    }

    /// Tasks may be sent to this runner.
    pub(crate) fn join(&mut self, runner: RankId, node: NodeNumber) {
        self.leases.join(runner, node);
        for task in self.tasks.values_mut().filter(|task| task.recall_at_send == Recall::Moved) {
            task.recall_at_send = Recall::None;
            if let Place::InFlight { at, work, recall: Recall::Moved } = task.place {
                task.place = Place::InFlight { at, work, recall: Recall::None };
                self.leases.permit_recall(at);
            }
        }
    }

    /// A runner takes no tasks for now. The one that runs there needs no other runner.
    pub(crate) fn pause(&mut self, runner: RankId) {
        self.discharge(runner);
        self.leases.pause(runner);
    }

    /// A runner takes tasks again.
    pub(crate) fn resume(&mut self, runner: RankId) {
        if self.leases.is_paused(runner) {
            self.leases.resume(runner);
            for call in self.leases.calls(runner) {
                let Some(task) = self.tasks.get(&call) else { continue };
                if self.is_active(task.place) {
                    self.load.add(task.function);
                }
            }
        }
    }

    /// The runner of a task says what the task needs before it goes on.
    pub(crate) fn blocked(&mut self, from: RankId, call: CallNumber, needs: Vec<TaskClass>) {
        let before = self.needs(call);
        if let Some(task) = self.tasks.get_mut(&call).filter(|task| task.place.runner() == Some(from)) {
            task.blocked = Some(needs);
            self.note_needs(call, before);
        }
    }

    /// The running task that has called a task.
    pub(crate) fn caller_of(&self, call: CallNumber) -> Option<Ticket> {
        self.tasks.get(&call)?.caller
    }

    /// What a task needs before it goes on.
    fn needs(&self, call: CallNumber) -> Vec<TaskClass> {
        match self.tasks.get(&call).map(|task| &task.blocked) {
            Some(Some(needs)) => needs.clone(),
            // Whether one that was sent has started is not known, so the runner tells it.
            Some(None) if !self.class.is_given_back() => vec![self.class.clone()],
            Some(None) | None => Vec::new(),
        }
    }

    fn note_needs(&mut self, call: CallNumber, before: Vec<TaskClass>) {
        let after = self.needs(call);
        // Also what is said again counts: something has changed below.
        if let Some(caller) = self.tasks.get(&call).and_then(|task| task.caller)
            && !(before.is_empty() && after.is_empty())
        {
            self.needs_changes.push(NeedsChange { caller, before, after });
        }
    }

    pub(crate) fn take_needs_changes(&mut self) -> Vec<NeedsChange> {
        std::mem::take(&mut self.needs_changes)
    }

    /// The calls of a running task that are blocked, with their runners if they were sent.
    pub(crate) fn blocked_calls(&self, caller: Ticket) -> impl Iterator<Item = (CallNumber, Option<RankId>)> {
        let of_caller = self.tasks.iter().filter(move |(_, task)| task.caller == Some(caller));
        let blocked = of_caller.filter(|(call, _)| !self.needs(**call).is_empty());
        blocked.map(|(call, task)| (*call, task.place.runner()))
    }

    /// A task that no runner has would wait for ever.
    pub(crate) fn fail(&mut self, call: CallNumber, error: CallError, effects: &mut Vec<TaskEffect>) {
        if self.tasks.get(&call).is_some_and(|task| task.place == Place::Waiting) {
            self.finish(call, Err(error), Vec::new(), effects);
        }
    }

    /// The coordinator takes a runner back, because it was idle, and has forgotten all wants of the class.
    pub(crate) fn lease_ends(
        &mut self,
        runner: RankId,
        estimates: &TaskEstimates,
        effects: &mut Vec<TaskEffect>,
    ) {
        self.leave(runner);
        let repeated = self.want.repeat(self.needed(estimates));
        effects.extend(repeated.map(|runners| TaskEffect::Want { runners }));
    }

    /// A runner has ended: the tasks that it had got are sent again, or are lost.
    pub(crate) fn runner_died(&mut self, runner: RankId, effects: &mut Vec<TaskEffect>) {
        self.leave(runner);
        for call in self.leases.calls(runner) {
            let Some(task) = self.tasks.get_mut(&call) else { continue };
            task.ends += 1;
            if task.retry() == Retry::Granted {
                self.move_to(call, Place::Waiting);
            } else {
                let lost = task.lost();
                self.finish(call, Err(lost), Vec::new(), effects);
            }
        }
        self.leases.end(runner);
    }

    /// There will be no runner: tasks that none has fail.
    pub(crate) fn no_runner(&mut self, why: &str, estimates: &TaskEstimates, effects: &mut Vec<TaskEffect>) {
        let waiting: Vec<CallNumber> = self.waiting.iter().map(|(_, _, call)| *call).collect();
        for call in waiting {
            self.finish(call, Err(CallError::NoRunner(why.to_owned())), Vec::new(), effects);
        }
        let repeated = self.want.repeat(self.needed(estimates));
        effects.extend(repeated.map(|runners| TaskEffect::Want { runners }));
    }

    /// Sends what windows leave room for, and tells the coordinator if the need for runners has changed.
    pub(crate) fn advance(&mut self, estimates: &TaskEstimates, effects: &mut Vec<TaskEffect>) {
        while let (Some((_, _, call)), Some(first)) = (self.waiting.first().copied(), self.leases.next()) {
            let Some(task) = self.tasks.get_mut(&call) else { break };
            let (work, recall) = (estimates.window(task.function), task.recall_at_send);
            // One that a runner has returned goes to who has least to do: somebody had nothing.
            let to = match recall {
                Recall::None if !task.spread.is_empty() => {
                    let room = if estimates.is_known(task.function) { Room::Any } else { Room::Window };
                    self.leases.nearest(&task.spread, room).unwrap_or(first)
                }
                Recall::None | Recall::Asked | Recall::Kept | Recall::Moved => first,
            };
            let (task, carries) = (task.request(), task.carries.clone());
            effects.push(TaskEffect::Run { to, call, task, carries });
            self.move_to(call, Place::InFlight { at: to, work, recall });
        }
        self.recall(estimates, effects);
        let reported = self.want.report(self.needed(estimates), self.leases.joined());
        effects.extend(reported.map(|runners| TaskEffect::Want { runners }));
    }

    /// Asks for tasks back that may wait behind others, for runners that have nothing to do.
    fn recall(&mut self, estimates: &TaskEstimates, effects: &mut Vec<TaskEffect>) {
        while self.waiting.is_empty()
            && self.recalls < self.leases.idle()
            && let Some(to) = self.leases.most_loaded()
            && let Some((call, work)) = self.latest_at(to, estimates)
        {
            self.recalls += 1;
            self.leases.recall(to);
            if let Some(task) = self.tasks.get_mut(&call) {
                task.place = Place::InFlight { at: to, work, recall: Recall::Asked };
            }
            effects.push(TaskEffect::Recall { to, call });
        }
    }

    /// The task that was sent last to a runner and not recalled: the one that most likely has not started.
    /// Not one that starts there before what it needs could be brought elsewhere.
    fn latest_at(&self, runner: RankId, estimates: &TaskEstimates) -> Option<(CallNumber, Span)> {
        let before = self.leases.work(runner);
        let is_near = |task: &QueuedTask| {
            estimates.is_known(task.function) && task.spread.longest_fetch_time() > before
        };
        self.leases.calls(runner).into_iter().rev().find_map(|call| {
            let task = self.tasks.get(&call)?;
            match task.place {
                Place::InFlight { work, recall: Recall::None, .. } if !is_near(task) => Some((call, work)),
                Place::InFlight { .. } | Place::Parked { .. } | Place::Waiting => None,
            }
        })
    }

    /// No more tasks go to this runner, and those that it has got need no other one.
    fn leave(&mut self, runner: RankId) {
        self.discharge(runner);
        self.leases.leave(runner);
    }

    /// The tasks that a runner has got do not count for the need of runners any more.
    fn discharge(&mut self, runner: RankId) {
        if self.leases.is_joined(runner) {
            let calls = self.leases.calls(runner);
            for task in calls.iter().filter_map(|call| self.tasks.get(call)) {
                if matches!(task.place, Place::InFlight { .. }) {
                    self.load.remove(task.function);
                }
            }
        }
    }

    fn move_to(&mut self, call: CallNumber, place: Place) {
        let needs = self.needs(call);
        let Some(task) = self.tasks.get_mut(&call) else { return };
        let old = std::mem::replace(&mut task.place, place);
        if old.runner() != place.runner() {
            task.blocked = None;
        }
        let (function, key) = (task.function, task.waiting_key(call));
        self.take_from(call, function, old, key);
        match place {
            Place::Waiting => _ = self.waiting.insert(key),
            Place::InFlight { at, work, recall } => self.leases.send(at, call, work, recall),
            Place::Parked { at } => self.leases.keep(at, call),
        }
        if self.is_active(place) {
            self.load.add(function);
        }
        self.note_needs(call, needs);
    }

    fn finish(
        &mut self,
        call: CallNumber,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        effects: &mut Vec<TaskEffect>,
    ) {
        let needs = self.needs(call);
        if let Some(task) = self.tasks.remove(&call) {
            if let Some(caller) = task.caller.filter(|_| !needs.is_empty()) {
                self.needs_changes.push(NeedsChange { caller, before: needs, after: Vec::new() });
            }
            self.take_from(call, task.function, task.place, task.waiting_key(call));
            effects.push(TaskEffect::Finish { call, result, carries, task });
        }
    }

    /// Removes a task from what is known of its place.
    fn take_from(&mut self, call: CallNumber, function: u32, place: Place, key: WaitingKey) {
        if self.is_active(place) {
            self.load.remove(function);
        }
        match place {
            Place::Waiting => _ = self.waiting.remove(&key),
            Place::InFlight { at, work, recall } => {
                self.recalls -= usize::from(recall == Recall::Asked);
                self.leases.remove(at, call, work, recall);
            }
            Place::Parked { at } => self.leases.forget(at, call),
        }
    }

    /// How many runners would have something to do: those with several tasks can be asked to return some.
    fn needed(&self, estimates: &TaskEstimates) -> u64 {
        self.load.runners(estimates).max(u64::from(!self.waiting.is_empty()))
    }

    /// Whether a task counts for the need of runners.
    fn is_active(&self, place: Place) -> bool {
        match place {
            Place::Waiting => true,
            Place::InFlight { at, .. } => self.leases.is_joined(at),
            Place::Parked { .. } => false,
        }
    }
}
