//! A running task as the calls that it makes see it, and those who interrupt it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use cohabit_application_core::{ObjectId, TaskWait, Ticket};
use futures::future::{AbortHandle, AbortRegistration};
use futures::task::AtomicWaker;

thread_local! {
    /// The task whose code this thread runs now.
    static CURRENT: RefCell<Option<Arc<RunningTask>>> = const { RefCell::new(None) };
}

/// Counts calls of a process that have not ended and whose caller is not known: code that a task spawned
/// makes them, or it is no process of tasks.
pub(crate) type UnknownCalls = Arc<AtomicUsize>;

/// A task that was started and has not ended.
#[derive(Debug)]
pub(crate) struct RunningTask {
    ticket: Ticket,
    /// The lost object that it makes again.
    remakes: Option<ObjectId>,
    abort: AbortHandle,
    unended_calls: AtomicUsize,
    /// Those of its process that may be its own.
    unknown_calls: UnknownCalls,
    /// How many of them are calls of tasks that were polled, and so are waited for.
    awaited_tasks: AtomicUsize,
    /// How many of them are no calls of tasks, and how often it waits for the store.
    others: AtomicUsize,
    /// What polls it again.
    waker: AtomicWaker,
    /// Whether it waits until it may make the next item of its stream, and what goes on then.
    is_paused: AtomicBool,
    paused: AtomicWaker,
}

/// A call that has not ended, as it counts for its caller.
#[derive(Debug)]
pub(crate) struct UnendedCall {
    caller: Caller,
    callee: CalleeKind,
}

/// The code that makes a call.
#[derive(Debug)]
enum Caller {
    Task(Arc<RunningTask>),
    Unknown(UnknownCalls),
}

/// What a call calls, or whoever waits for a reference waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CalleeKind {
    Task,
    /// A task, and the call was polled.
    AwaitedTask,
    /// An actor, or a reference that came from others.
    Other,
}

/// A task waits for the store of its node: it does not wait for its calls alone.
#[derive(Debug)]
pub(super) struct StoreWait {
    caller: Option<Arc<RunningTask>>,
}

impl RunningTask {
    pub(super) fn new(
        ticket: Ticket,
        remakes: Option<ObjectId>,
        unknown_calls: &UnknownCalls,
    ) -> (Arc<RunningTask>, AbortRegistration) {
        let (abort, registration) = AbortHandle::new_pair();
        let task = RunningTask {
            ticket,
            remakes,
            abort,
            unended_calls: AtomicUsize::new(0),
            unknown_calls: Arc::clone(unknown_calls),
            awaited_tasks: AtomicUsize::new(0),
            others: AtomicUsize::new(0),
            waker: AtomicWaker::new(),
            is_paused: AtomicBool::new(false),
            paused: AtomicWaker::new(),
        };
        (Arc::new(task), registration)
    }

    /// The one whose code this thread runs now.
    pub(super) fn current() -> Option<Arc<RunningTask>> {
        CURRENT.with_borrow(Option::clone)
    }

    pub(crate) const fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// The lost object that the present code makes again: its value is to be stored under that name.
    pub(crate) fn remakes_now() -> Option<ObjectId> {
        CURRENT.with_borrow(|task| task.as_ref().and_then(|task| task.remakes))
    }

    /// It ends at its next await; a plain function asks whether it should.
    pub(super) fn interrupt(&self) {
        self.abort.abort();
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.abort.is_aborted()
    }

    /// Pauses the stream of the task until [`RunningTask::make_more`], unless it may go on. Whether it may.
    pub(super) fn pause_unless(&self, may_make: impl Fn() -> bool, waker: &Waker) -> bool {
        // Asked again, because the word that it may could have come before the waker was there.
        let goes_on = may_make() || {
            self.paused.register(waker);
            may_make()
        };
        self.is_paused.store(!goes_on, Ordering::Relaxed);
        goes_on
    }

    /// It may make the next item of its stream.
    pub(super) fn make_more(&self) {
        self.paused.wake();
    }

    /// Runs code of the task.
    pub(crate) fn run<R>(self: &Arc<RunningTask>, code: impl FnOnce() -> R) -> R {
        let outer = CURRENT.replace(Some(Arc::clone(self)));
        let result = code();
        CURRENT.set(outer);
        result
    }

    /// A call of it has ended: it is polled again, whether it waits for that call or not.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// This wakes it.
    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// What it waits for, if it waits for others.
    pub(crate) fn wait(&self) -> TaskWait {
        let others = self.others.load(Ordering::Relaxed) + self.unknown_calls.load(Ordering::Relaxed);
        let is_paused = self.is_paused.load(Ordering::Relaxed);
        if others == 0 && !is_paused && self.awaited_tasks.load(Ordering::Relaxed) > 0 {
            TaskWait::Tasks
        } else {
            TaskWait::Others
        }
    }

    /// Whether it waits for others: for its calls, or for who reads its stream.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.has_unended_calls() || self.is_paused.load(Ordering::Relaxed)
    }

    /// Whether it may wait for a call: one that it made has not ended, or one whose caller is not known.
    fn has_unended_calls(&self) -> bool {
        // They are counted by the thread that asks, unless the code has threads of its own.
        self.unended_calls.load(Ordering::Relaxed) + self.unknown_calls.load(Ordering::Relaxed) > 0
    }
}

impl UnendedCall {
    /// A call that the present code makes, in a process that counts what is not known so.
    pub(crate) fn begin(unknown: &UnknownCalls, callee: CalleeKind) -> UnendedCall {
        let of_process = || Caller::Unknown(Arc::clone(unknown));
        let call =
            UnendedCall { caller: RunningTask::current().map_or_else(of_process, Caller::Task), callee };
        call.counter().fetch_add(1, Ordering::Relaxed);
        call.kind_counter().into_iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
        call
    }

    /// Somebody waits for it.
    pub(crate) fn awaited(&mut self) {
        if self.callee == CalleeKind::Task {
            self.callee = CalleeKind::AwaitedTask;
            self.kind_counter().into_iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
        }
    }

    /// What whoever waits for the value of this call waits for.
    pub(super) const fn awaited_callee(&self) -> CalleeKind {
        match self.callee {
            CalleeKind::Task | CalleeKind::AwaitedTask => CalleeKind::AwaitedTask,
            CalleeKind::Other => CalleeKind::Other,
        }
    }

    /// Whether the task whose code this thread runs now has made it.
    pub(super) fn is_of_present_code(&self) -> bool {
        let present = RunningTask::current().map(|task| task.ticket);
        present.is_some() && present == self.caller()
    }

    fn kind_counter(&self) -> Option<&AtomicUsize> {
        let Caller::Task(caller) = &self.caller else { return None };
        match self.callee {
            CalleeKind::Task => None,
            CalleeKind::AwaitedTask => Some(&caller.awaited_tasks),
            CalleeKind::Other => Some(&caller.others),
        }
    }

    /// The task that makes it.
    pub(crate) fn caller(&self) -> Option<Ticket> {
        match &self.caller {
            Caller::Task(task) => Some(task.ticket),
            Caller::Unknown(_) => None,
        }
    }

    fn counter(&self) -> &AtomicUsize {
        match &self.caller {
            Caller::Task(task) => &task.unended_calls,
            Caller::Unknown(calls) => calls,
        }
    }
}

impl StoreWait {
    /// The present code begins to wait.
    pub(super) fn begin() -> StoreWait {
        let caller = RunningTask::current();
        caller.iter().for_each(|task| _ = task.others.fetch_add(1, Ordering::Relaxed));
        StoreWait { caller }
    }
}

impl Drop for StoreWait {
    fn drop(&mut self) {
        self.caller.iter().for_each(|task| _ = task.others.fetch_sub(1, Ordering::Relaxed));
    }
}

impl Drop for UnendedCall {
    fn drop(&mut self) {
        self.counter().fetch_sub(1, Ordering::Relaxed);
        self.kind_counter().into_iter().for_each(|counter| _ = counter.fetch_sub(1, Ordering::Relaxed));
    }
}

/// Whether the running task was cancelled, or its process is to end: a plain function that computes for long
/// asks now and then, and returns early. Async code ends at its next await without asking.
///
/// Outside of a task, and on other threads than the one that called its function, it is `false`.
#[must_use]
pub fn cancelled() -> bool {
    CURRENT.with_borrow(|task| task.as_ref().is_some_and(|task| task.abort.is_aborted()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_knows_its_calls_and_whether_it_is_cancelled() {
        let unknown = UnknownCalls::default();
        let (task, _registration) = RunningTask::new(Ticket(7), None, &unknown);
        let mut call = task.run(|| {
            assert!(!cancelled());
            UnendedCall::begin(&unknown, CalleeKind::Task)
        });
        assert_eq!(call.caller(), Some(Ticket(7)));
        assert!(task.has_unended_calls());
        assert_eq!(task.wait(), TaskWait::Others, "it was started, and something else is waited for");
        call.awaited();
        assert_eq!(task.wait(), TaskWait::Tasks);
        let of_actor = task.run(|| UnendedCall::begin(&unknown, CalleeKind::Other));
        assert_eq!(task.wait(), TaskWait::Others);
        drop(of_actor);
        assert_eq!(task.wait(), TaskWait::Tasks);
        let of_store = task.run(StoreWait::begin);
        assert_eq!(task.wait(), TaskWait::Others);
        drop(of_store);
        assert_eq!(task.wait(), TaskWait::Tasks);
        assert!(task.run(|| call.is_of_present_code()) && !call.is_of_present_code());
        assert_eq!(call.awaited_callee(), CalleeKind::AwaitedTask);
        drop(call);
        assert!(!task.has_unended_calls());
        // One of code that is not known keeps every task from counting as busy.
        let call = UnendedCall::begin(&unknown, CalleeKind::Task);
        assert_eq!((call.caller(), task.has_unended_calls()), (None, true));
        drop(call);
        assert!(!task.waits_for_others());
        assert!(!task.pause_unless(|| false, Waker::noop()) && task.waits_for_others());
        assert!(task.pause_unless(|| true, Waker::noop()) && !task.waits_for_others());
        task.interrupt();
        assert_eq!((cancelled(), task.run(cancelled)), (false, true));
    }
}
