//! A running task as the calls that it makes see it, and those who interrupt it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use cohabit_application_core::Ticket;
use futures::future::{AbortHandle, AbortRegistration};
use futures::task::AtomicWaker;

thread_local! {
    /// The task whose code this thread runs now.
    static CURRENT: RefCell<Option<Arc<RunningTask>>> = const { RefCell::new(None) };
}

/// Calls of this process that have not ended and whose caller is not known: code that a task spawned makes
/// them, or this is no process of tasks.
static UNKNOWN_CALLER: AtomicUsize = AtomicUsize::new(0);

/// A task that was started and has not ended.
#[derive(Debug)]
pub(crate) struct RunningTask {
    ticket: Ticket,
    abort: AbortHandle,
    unended_calls: AtomicUsize,
    /// Whether it waits until it may make the next item of its stream, and what goes on then.
    is_paused: AtomicBool,
    paused: AtomicWaker,
}

/// A call that has not ended, as it counts for its caller.
#[derive(Debug)]
pub(crate) struct UnendedCall {
    caller: Option<Arc<RunningTask>>,
}

impl RunningTask {
    pub(super) fn new(ticket: Ticket) -> (Arc<RunningTask>, AbortRegistration) {
        let (abort, registration) = AbortHandle::new_pair();
        let task = RunningTask {
            ticket,
            abort,
            unended_calls: AtomicUsize::new(0),
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

    /// Whether it waits for others: for its calls, or for who reads its stream.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.has_unended_calls() || self.is_paused.load(Ordering::Relaxed)
    }

    /// Whether it may wait for a call: one that it made has not ended, or one whose caller is not known.
    fn has_unended_calls(&self) -> bool {
        // They are counted by the thread that asks, unless the code has threads of its own.
        self.unended_calls.load(Ordering::Relaxed) + UNKNOWN_CALLER.load(Ordering::Relaxed) > 0
    }
}

impl UnendedCall {
    /// A call that the present code makes.
    pub(crate) fn begin() -> UnendedCall {
        let call = UnendedCall { caller: RunningTask::current() };
        call.counter().fetch_add(1, Ordering::Relaxed);
        call
    }

    /// The task that makes it.
    pub(crate) fn caller(&self) -> Option<Ticket> {
        self.caller.as_ref().map(|task| task.ticket)
    }

    fn counter(&self) -> &AtomicUsize {
        self.caller.as_ref().map_or(&UNKNOWN_CALLER, |task| &task.unended_calls)
    }
}

impl Drop for UnendedCall {
    fn drop(&mut self) {
        self.counter().fetch_sub(1, Ordering::Relaxed);
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
        let (task, _registration) = RunningTask::new(Ticket(7));
        let call = task.run(|| {
            assert!(!cancelled());
            UnendedCall::begin()
        });
        assert_eq!(call.caller(), Some(Ticket(7)));
        assert!(task.has_unended_calls());
        drop(call);
        assert!(!task.has_unended_calls());
        // One of code that is not known keeps every task from counting as busy.
        let call = UnendedCall::begin();
        assert_eq!((call.caller(), task.has_unended_calls()), (None, true));
        drop(call);
        assert!(!task.waits_for_others());
        assert!(!task.pause_unless(|| false, Waker::noop()) && task.waits_for_others());
        assert!(task.pause_unless(|| true, Waker::noop()) && !task.waits_for_others());
        task.interrupt();
        assert_eq!((cancelled(), task.run(cancelled)), (false, true));
    }
}
