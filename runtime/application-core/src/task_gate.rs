//! When the tasks that have come to a runner start: one at a time, the deepest first.
//!
//! A task that waits for calls of its own is parked, if its class gives back what it uses: then the next
//! one starts. With the deepest first, trees of tasks are walked depth first, and the number of parked tasks
//! stays near the depth of a tree times its width. What a task waits for that keeps its place is in
//! `gate_block`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_types::RankId;

use crate::descriptions::StartedTaskDescription;
use crate::errors::CallError;
use crate::frames::TaskRequest;
use crate::gate_block::{GateBlock, PauseChange};
use crate::held::HeldId;
use crate::ids::{CallNumber, ObjectId, Ticket};
use crate::stream_maker::StreamMaker;
use crate::stream_window::ItemTotal;
use crate::task_class::TaskClass;
use crate::task_wait::TaskWait;

/// The tasks that have come and not ended.
#[derive(Debug)]
pub(crate) struct TaskGate {
    last: Ticket,
    state: GateState,
    /// By depth and order of arrival.
    waiting: BTreeMap<(Reverse<u32>, Ticket), WaitingTask>,
    started: BTreeMap<Ticket, StartedTask>,
    /// Number of started tasks that are not parked.
    active: usize,
    tickets: BTreeMap<(RankId, CallNumber), (Reverse<u32>, Ticket)>,
    rest: u64,
    activity: Activity,
    /// Where tasks keep GPUs while they wait.
    pub(crate) block: Option<GateBlock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateState {
    /// The coordinator has not said yet that this process runs tasks.
    Shut,
    Open(OnWait),
    /// What has started ends; everything else goes back.
    Ending,
    /// The process ends without waiting for what has started.
    Abandoned,
    /// It was said that nothing is left.
    Ended,
}

/// What happens while a task waits for calls of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnWait {
    StartOthers,
    Nothing,
}

/// Whether the rest with the last number is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Busy,
    Resting,
}

#[derive(Debug)]
struct WaitingTask {
    caller: RankId,
    call: CallNumber,
    task: TaskRequest,
    carries: Vec<HeldId>,
}

#[derive(Debug)]
struct StartedTask {
    caller: RankId,
    call: CallNumber,
    depth: u32,
    step: TaskStep,
    /// What it waits for; nothing if it runs.
    wait: Option<TaskWait>,
    /// What the caller was told that it needs before it goes on.
    needs: Vec<TaskClass>,
    /// Whether the caller knows that it waits, or has waited.
    announced: bool,
    interrupted: bool,
    stream: StreamMaker,
    store_as: Option<ObjectId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskStep {
    Active,
    Parked,
}

/// How far a blocked task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockedTask {
    Waiting,
    Started(Ticket),
}

/// What a change brings about, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TaskGateEffect {
    Start {
        ticket: Ticket,
        task: TaskRequest,
        carries: Vec<HeldId>,
    },
    /// A task that has started should end.
    Interrupt {
        ticket: Ticket,
    },
    /// A task will never start: it was cancelled, or its caller has ended.
    Drop {
        caller: RankId,
        call: CallNumber,
        carries: Vec<HeldId>,
    },
    /// A task will not start here.
    Return {
        caller: RankId,
        call: CallNumber,
        carries: Vec<HeldId>,
    },
    /// A task that is wanted back has started.
    Kept {
        caller: RankId,
        call: CallNumber,
    },
    /// A task waits for the first time.
    Parked {
        caller: RankId,
        call: CallNumber,
    },
    /// What a task needs before it goes on has changed.
    Blocked {
        caller: RankId,
        call: CallNumber,
        needs: Vec<TaskClass>,
    },
    /// What the task needs that keeps the GPUs of this process has changed.
    Report {
        needs: Vec<TaskClass>,
    },
    /// A caller should send no tasks for now, or may again.
    Pause {
        caller: RankId,
    },
    Resume {
        caller: RankId,
    },
    /// A task that has not started fails.
    Fail {
        caller: RankId,
        call: CallNumber,
        carries: Vec<HeldId>,
        error: CallError,
    },
    /// There is no task.
    Rest {
        rest: u64,
    },
    /// There has been no task for the time of a rest.
    Idle,
    /// There is no task, and none will start.
    Ended,
}

impl TaskGate {
    pub(crate) const fn new() -> TaskGate {
        TaskGate {
            last: Ticket(0),
            state: GateState::Shut,
            waiting: BTreeMap::new(),
            started: BTreeMap::new(),
            active: 0,
            tickets: BTreeMap::new(),
            rest: 0,
            activity: Activity::Busy,
            block: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.started.is_empty()
    }

    /// The tasks that have started and not ended.
    pub(crate) fn started(&self) -> impl Iterator<Item = StartedTaskDescription> {
        self.started.values().map(|task| StartedTaskDescription { caller: task.caller, call: task.call })
    }

    /// The lost object that a started task makes again.
    pub(crate) fn store_as(&self, ticket: Ticket) -> Option<ObjectId> {
        self.started.get(&ticket)?.store_as
    }

    /// How deep a task is that has started.
    pub(crate) fn depth(&self, ticket: Ticket) -> Option<u32> {
        self.started.get(&ticket).map(|task| task.depth)
    }

    /// This process runs tasks of this class. Some may have come already.
    pub(crate) fn open(&mut self, class: &TaskClass, effects: &mut Vec<TaskGateEffect>) {
        if self.state == GateState::Shut {
            let on_wait = if class.is_given_back() { OnWait::StartOthers } else { OnWait::Nothing };
            self.state = GateState::Open(on_wait);
            self.block = (on_wait == OnWait::Nothing).then(|| GateBlock::new(class.clone()));
            self.advance(effects);
        }
    }

    /// A task has come.
    pub(crate) fn arrive(
        &mut self,
        caller: RankId,
        call: CallNumber,
        task: TaskRequest,
        carries: Vec<HeldId>,
        effects: &mut Vec<TaskGateEffect>,
    ) {
        match self.state {
            GateState::Shut | GateState::Open(_) => {
                self.activity = Activity::Busy;
                if let Some(pause) = self.block.as_mut().and_then(|block| block.send_back(caller)) {
                    effects.extend(pause);
                    effects.push(TaskGateEffect::Return { caller, call, carries });
                    return;
                }
                self.last = Ticket(self.last.0 + 1);
                let key = (Reverse(task.depth), self.last);
                self.tickets.insert((caller, call), key);
                self.waiting.insert(key, WaitingTask { caller, call, task, carries });
                self.advance(effects);
            }
            GateState::Ending | GateState::Abandoned | GateState::Ended => {
                effects.push(TaskGateEffect::Return { caller, call, carries });
            }
        }
    }

    /// A started task has ended: whose it was.
    pub(crate) fn finish(&mut self, ticket: Ticket) -> Option<(RankId, CallNumber)> {
        let ended = self.started.remove(&ticket)?;
        self.active -= usize::from(ended.step == TaskStep::Active);
        self.tickets.remove(&(ended.caller, ended.call));
        Some((ended.caller, ended.call))
    }

    /// A started task waits.
    pub(crate) fn wait(&mut self, ticket: Ticket, wait: TaskWait, effects: &mut Vec<TaskGateEffect>) {
        if let Some(task) = self.started.get_mut(&ticket) {
            task.wait = Some(wait);
        }
        self.park(ticket, effects);
    }

    /// A started task gives its place to others, if its class is given back.
    fn park(&mut self, ticket: Ticket, effects: &mut Vec<TaskGateEffect>) {
        let GateState::Open(OnWait::StartOthers) = self.state else { return };
        let Some(task) = self.started.get_mut(&ticket).filter(|task| task.step == TaskStep::Active) else {
            return;
        };
        task.step = TaskStep::Parked;
        self.active -= 1;
        if !std::mem::replace(&mut task.announced, true) {
            effects.push(TaskGateEffect::Parked { caller: task.caller, call: task.call });
        }
        self.advance(effects);
    }

    /// A call of a started task has ended: it waits no longer, or says so again.
    pub(crate) fn wake(&mut self, ticket: Ticket) {
        if let Some(task) = self.started.get_mut(&ticket) {
            task.wait = None;
        }
    }

    /// A parked task goes on, beside what has started meanwhile.
    pub(crate) fn go_on(&mut self, ticket: Ticket) {
        self.wake(ticket);
        if let Some(task) = self.started.get_mut(&ticket).filter(|task| task.step == TaskStep::Parked) {
            task.step = TaskStep::Active;
            self.active += 1;
        }
    }

    /// The caller wants a task back, unless it has started or ended.
    pub(crate) fn recall(&mut self, caller: RankId, call: CallNumber, effects: &mut Vec<TaskGateEffect>) {
        let Some(key) = self.tickets.get(&(caller, call)).copied() else { return };
        match self.waiting.remove(&key) {
            Some(WaitingTask { carries, .. }) => {
                self.tickets.remove(&(caller, call));
                effects.push(TaskGateEffect::Return { caller, call, carries });
                self.advance(effects);
            }
            None => effects.push(TaskGateEffect::Kept { caller, call }),
        }
    }

    /// Whether a started task may make the next item of its stream.
    pub(crate) fn may_make(&self, ticket: Ticket) -> bool {
        self.started.get(&ticket).is_some_and(|task| task.stream.may_make())
    }

    /// A started task has made an item: for whom, and its number, if it is to be sent.
    pub(crate) fn make(&mut self, ticket: Ticket, bytes: u64) -> Option<(RankId, CallNumber, u64)> {
        let task = self.started.get_mut(&ticket)?;
        let number = task.stream.make(bytes)?;
        Some((task.caller, task.call, number))
    }

    /// Items were read. The task that may go on making them.
    pub(crate) fn credit(&mut self, caller: RankId, call: CallNumber, read: ItemTotal) -> Option<Ticket> {
        let key = self.tickets.get(&(caller, call)).copied()?;
        // One that waits can be sent again, after items have arrived from an earlier runner.
        if let Some(position) = self.waiting.get_mut(&key).and_then(|task| task.task.resume.as_mut()) {
            position.unread.remove(read);
        }
        let task = self.started.get_mut(&key.1)?;
        task.stream.credit(read).then_some(key.1)
    }

    /// The caller needs no answer any more.
    pub(crate) fn cancel(&mut self, caller: RankId, call: CallNumber, effects: &mut Vec<TaskGateEffect>) {
        if let Some(key) = self.tickets.get(&(caller, call)).copied() {
            self.end_task(key, effects);
            self.advance(effects);
        }
    }

    /// A caller has ended: none of its tasks starts any more.
    pub(crate) fn caller_ended(&mut self, caller: RankId, effects: &mut Vec<TaskGateEffect>) {
        let all = (caller, CallNumber(0))..=(caller, CallNumber(u64::MAX));
        let keys: Vec<_> = self.tickets.range(all).map(|(_, key)| *key).collect();
        for key in keys {
            self.end_task(key, effects);
        }
        if let Some(block) = &mut self.block {
            block.forget(caller);
        }
        self.advance(effects);
    }

    /// The time of a rest is over. Without a task in it, the process is idle, and rests again: it may be told
    /// to stay.
    pub(crate) fn rested(&mut self, rest: u64, effects: &mut Vec<TaskGateEffect>) {
        if rest == self.rest && self.activity == Activity::Resting {
            effects.push(TaskGateEffect::Idle);
            self.activity = Activity::Busy;
            self.advance(effects);
        }
    }

    /// Nothing starts any more; what waits goes back.
    pub(crate) fn end(&mut self, effects: &mut Vec<TaskGateEffect>) {
        if matches!(self.state, GateState::Shut | GateState::Open(_)) {
            self.state = GateState::Ending;
            self.return_waiting(effects);
            self.advance(effects);
        }
    }

    /// As `end`, but nobody is told when what has started has ended.
    pub(crate) fn abandon(&mut self, effects: &mut Vec<TaskGateEffect>) {
        self.state = GateState::Abandoned;
        self.return_waiting(effects);
    }

    /// Starts what may start, and says so if there is nothing.
    pub(crate) fn advance(&mut self, effects: &mut Vec<TaskGateEffect>) {
        self.report_block(effects);
        match self.state {
            GateState::Shut | GateState::Abandoned | GateState::Ended => {}
            GateState::Ending => {
                if self.is_empty() {
                    self.state = GateState::Ended;
                    effects.push(TaskGateEffect::Ended);
                }
            }
            GateState::Open(_) => {
                if self.active == 0
                    && let Some(((Reverse(depth), ticket), first)) = self.waiting.pop_first()
                {
                    let WaitingTask { caller, call, task, carries } = first;
                    let started = StartedTask::new(caller, call, depth, &task);
                    self.started.insert(ticket, started);
                    self.active = 1;
                    // Who waits for it learns that it has started.
                    if depth > 0 && self.block.is_some() {
                        effects.push(TaskGateEffect::Blocked { caller, call, needs: Vec::new() });
                    }
                    effects.push(TaskGateEffect::Start { ticket, task, carries });
                }
                if self.is_empty() && self.activity == Activity::Busy {
                    self.activity = Activity::Resting;
                    self.rest += 1;
                    effects.push(TaskGateEffect::Rest { rest: self.rest });
                }
            }
        }
    }

    /// Whether a started task waits for nothing but tasks that it has called.
    pub(crate) fn waits_for_tasks(&self, ticket: Ticket) -> bool {
        let waits = |task: &StartedTask| task.wait == Some(TaskWait::Tasks) && !task.interrupted;
        self.started.get(&ticket).is_some_and(waits)
    }

    /// Whether the caller of a started task was told that it is blocked.
    pub(crate) fn is_blocked(&self, ticket: Ticket) -> bool {
        self.started.get(&ticket).is_some_and(|task| !task.needs.is_empty())
    }

    /// A started task needs this before it goes on. Said again if somebody may rely on what was said before.
    pub(crate) fn set_needs(
        &mut self,
        ticket: Ticket,
        needs: Vec<TaskClass>,
        was_asked: bool,
        effects: &mut Vec<TaskGateEffect>,
    ) {
        let Some(task) = self.started.get_mut(&ticket).filter(|it| was_asked || it.needs != needs) else {
            return;
        };
        task.needs.clone_from(&needs);
        effects.push(TaskGateEffect::Blocked { caller: task.caller, call: task.call, needs });
        if let Some(block) = self.block.as_mut().filter(|_| was_asked) {
            block.repeat();
        }
        self.report_block(effects);
    }

    /// The started task that keeps the GPUs of this process, if it is blocked.
    pub(crate) fn blocked_task(&self) -> Option<Ticket> {
        let blocked = self.started.iter().find(|(_, task)| !task.needs.is_empty());
        blocked.map(|(ticket, _)| *ticket).filter(|_| self.block.is_some())
    }

    /// Who has called a started task.
    pub(crate) fn caller_of(&self, ticket: Ticket) -> Option<(RankId, CallNumber)> {
        self.started.get(&ticket).map(|task| (task.caller, task.call))
    }

    /// How far a task is whose caller takes it for blocked.
    pub(crate) fn blocked_call(&self, caller: RankId, call: CallNumber) -> Option<BlockedTask> {
        let key = self.tickets.get(&(caller, call))?;
        if self.waiting.contains_key(key) {
            return Some(BlockedTask::Waiting);
        }
        self.is_blocked(key.1).then_some(BlockedTask::Started(key.1))
    }

    /// A task that has not started would wait for ever.
    pub(crate) fn fail_waiting(
        &mut self,
        (caller, call): (RankId, CallNumber),
        error: impl FnOnce(&TaskClass) -> CallError,
        effects: &mut Vec<TaskGateEffect>,
    ) {
        let Some(key) = self.tickets.get(&(caller, call)).copied() else { return };
        if let (Some(block), Some(waiting)) = (&self.block, self.waiting.remove(&key)) {
            self.tickets.remove(&(caller, call));
            let (carries, error) = (waiting.carries, error(&block.class));
            effects.push(TaskGateEffect::Fail { caller, call, carries, error });
            self.advance(effects);
        }
    }

    /// Tells the coordinator what the task needs that keeps the GPUs of this process. While it is blocked,
    /// nothing waits here: another runner can have it.
    fn report_block(&mut self, effects: &mut Vec<TaskGateEffect>) {
        let Some(block) = &mut self.block else { return };
        let needs = self.started.values().map(|task| &task.needs).find(|needs| !needs.is_empty());
        let change = block.report(needs.map_or(&[], Vec::as_slice), effects);
        if change == PauseChange::Begins {
            let waiting = self.waiting.values().map(|task| task.caller);
            let callers = waiting.chain(self.started.values().map(|task| task.caller));
            block.pause(callers, effects);
            self.return_waiting(effects);
        }
    }

    fn return_waiting(&mut self, effects: &mut Vec<TaskGateEffect>) {
        for WaitingTask { caller, call, carries, task: _ } in std::mem::take(&mut self.waiting).into_values()
        {
            self.tickets.remove(&(caller, call));
            effects.push(TaskGateEffect::Return { caller, call, carries });
        }
    }

    /// Drops a task that waits, interrupts one that has started.
    fn end_task(&mut self, key: (Reverse<u32>, Ticket), effects: &mut Vec<TaskGateEffect>) {
        if let Some(WaitingTask { caller, call, carries, task: _ }) = self.waiting.remove(&key) {
            self.tickets.remove(&(caller, call));
            effects.push(TaskGateEffect::Drop { caller, call, carries });
        } else if let Some(task) = self.started.get_mut(&key.1)
            && !std::mem::replace(&mut task.interrupted, true)
        {
            effects.push(TaskGateEffect::Interrupt { ticket: key.1 });
            // It ends soon, whatever it waits for.
            self.set_needs(key.1, Vec::new(), false, effects);
        }
    }
}

impl StartedTask {
    fn new(caller: RankId, call: CallNumber, depth: u32, task: &TaskRequest) -> StartedTask {
        StartedTask {
            caller,
            call,
            depth,
            step: TaskStep::Active,
            wait: None,
            needs: Vec::new(),
            announced: false,
            interrupted: false,
            stream: StreamMaker::new(task.resume.as_deref()),
            store_as: task.store_as,
        }
    }
}
