//! A call whatever its value is: it is prepared, sent, perhaps waits for room, and ends or is cancelled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cohabit_application_core::CallRequest;
use tokio::time::{Sleep, sleep};

use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::prepared_task::PreparedTask;
use crate::process::{
    ActorHold, Answer, MemberProcess, OutgoingCall, SentCall, StreamItem, UnendedCall, WhenFull,
};

/// A call.
pub(crate) struct CallState {
    progress: CallProgress,
    limit: Option<Duration>,
    deadline: Option<Pin<Box<Sleep>>>,
    at_drop: AtDrop,
}

/// A call that was not sent, with the handles in its arguments.
pub(crate) struct PreparedCall {
    pub(crate) target: PreparedTarget,
    pub(crate) holds: Vec<Arc<ActorHold>>,
}

/// What is called.
pub(crate) enum PreparedTarget {
    Method {
        actor: Arc<ActorHold>,
        request: CallRequest,
    },
    Task(PreparedTask),
    /// A task that returns a stream.
    Stream(PreparedTask),
}

enum CallProgress {
    /// Nothing was sent.
    Prepared(Result<PreparedCall>),
    Sent {
        process: &'static MemberProcess,
        call: SentCall,
        _counts: UnendedCall,
    },
    /// Its end was taken.
    Ended,
}

/// What becomes of a call that is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtDrop {
    Cancel,
    GoOn,
}

impl CallState {
    pub(crate) const fn new(prepared: Result<PreparedCall>) -> CallState {
        let progress = CallProgress::Prepared(prepared);
        CallState { progress, limit: None, deadline: None, at_drop: AtDrop::Cancel }
    }

    /// Changes the options of a call of a task that was not sent.
    pub(crate) fn set<V>(&mut self, value: Result<V>, set: impl FnOnce(&mut TaskOptions, V)) {
        let CallProgress::Prepared(prepared) = &mut self.progress else { return };
        match (&mut *prepared, value) {
            (
                Ok(PreparedCall {
                    target: PreparedTarget::Task(task) | PreparedTarget::Stream(task), ..
                }),
                Ok(value),
            ) => {
                set(&mut task.options, value);
            }
            (Ok(_), Err(error)) => *prepared = Err(error),
            (Ok(_) | Err(_), Ok(_) | Err(_)) => {}
        }
    }

    pub(crate) const fn limit(&mut self, limit: Duration) {
        self.limit = Some(limit);
    }

    /// It goes on when it is dropped.
    pub(crate) const fn detach(&mut self) {
        self.at_drop = AtDrop::GoOn;
    }

    /// Makes the call, unless it was made.
    ///
    /// # Errors
    /// If it may not be made; it has ended then.
    pub(crate) fn send(&mut self, when_full: WhenFull) -> Result<()> {
        let CallProgress::Prepared(_) = &self.progress else { return Ok(()) };
        let CallProgress::Prepared(prepared) = std::mem::replace(&mut self.progress, CallProgress::Ended)
        else {
            return Ok(());
        };
        let PreparedCall { target, mut holds } = prepared?;
        let (process, counts) = (MemberProcess::current()?, UnendedCall::begin());
        let call = match target {
            PreparedTarget::Method { actor: hold, request } => {
                let actor = hold.actor();
                holds.push(hold);
                OutgoingCall::Method { actor, request }
            }
            PreparedTarget::Task(task) => OutgoingCall::Task(task.describe(counts.caller())?),
            PreparedTarget::Stream(task) => OutgoingCall::Stream(task.describe(counts.caller())?),
        };
        let sent = process.with(|state| state.call(call, holds, when_full));
        let call = sent.map_err(Error::of_call)?;
        self.progress = CallProgress::Sent { process, call, _counts: counts };
        self.deadline = self.limit.map(|limit| Box::pin(sleep(limit)));
        Ok(())
    }

    /// Waits until there is room for the call.
    ///
    /// # Errors
    /// If there was none in time.
    pub(crate) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_deadline(context)?;
        let CallProgress::Sent { call, .. } = &mut self.progress else { return Poll::Ready(Ok(())) };
        let Some(accepted) = &mut call.accepted else { return Poll::Ready(Ok(())) };
        // It is dropped without a word when the process ends.
        let _accepted = ready!(Pin::new(accepted).poll(context));
        call.accepted = None;
        Poll::Ready(Ok(()))
    }

    /// Makes the call, unless it was made, and waits for its answer.
    ///
    /// # Errors
    /// If it could not be made, or did not end in time, or its end was taken before.
    pub(crate) fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(&'static MemberProcess, Answer)>> {
        self.send(WhenFull::Wait)?;
        let CallProgress::Sent { process, call, .. } = &mut self.progress else {
            return Poll::Ready(Err(Error::Refused("this call has ended and was awaited before".into())));
        };
        let process = *process;
        let Poll::Ready(answer) = Pin::new(&mut call.answer).poll(context) else {
            self.poll_deadline(context)?;
            return Poll::Pending;
        };
        self.progress = CallProgress::Ended;
        Poll::Ready(answer.map(|answer| (process, answer)).map_err(|_| Error::Cancelled))
    }

    /// Makes the call, unless it was made, and waits for the next item of its stream; none after its end.
    ///
    /// # Errors
    /// How the stream ended, once: as a call does.
    pub(crate) fn poll_item(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<(&'static MemberProcess, StreamItem)>>> {
        self.send(WhenFull::Wait)?;
        self.poll_deadline(context)?;
        let CallProgress::Sent { process, call, .. } = &mut self.progress else {
            return Poll::Ready(Ok(None));
        };
        let process = *process;
        if let Some(item) = ready!(call.poll_item(context)) {
            process.with(|state| state.read(call));
            return Poll::Ready(Ok(Some((process, item))));
        }
        let (process, answer) = ready!(self.poll_answer(context))?;
        process.release(answer.carries);
        Poll::Ready(answer.result.map(|_| None).map_err(Error::of_call))
    }

    /// Cancels the call when its time is over.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Result<()> {
        let (Some(deadline), Some(limit)) = (&mut self.deadline, self.limit) else { return Ok(()) };
        let CallProgress::Sent { .. } = &self.progress else { return Ok(()) };
        if deadline.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        self.cancel();
        Err(Error::TimedOut(limit))
    }

    pub(crate) fn cancel(&mut self) {
        let ended = std::mem::replace(&mut self.progress, CallProgress::Ended);
        let CallProgress::Sent { process, mut call, .. } = ended else { return };
        call.answer.close();
        match call.answer.try_recv() {
            Ok(Answer { carries, .. }) => process.release(carries),
            Err(_) if self.at_drop == AtDrop::Cancel => process.with(|state| state.cancel(&call)),
            Err(_) => {}
        }
        call.take_items().into_iter().for_each(|item| process.release(item.carries));
    }
}

impl Drop for CallState {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.progress {
            CallProgress::Prepared(Ok(prepared)) => match &prepared.target {
                PreparedTarget::Method { actor, .. } => write!(f, "call of {actor:?}, not made yet"),
                PreparedTarget::Task(task) | PreparedTarget::Stream(task) => {
                    write!(f, "call of task {}, not made yet", task.entry.origin.name)
                }
            },
            CallProgress::Prepared(Err(error)) => write!(f, "call that cannot be made: {error}"),
            CallProgress::Sent { call, .. } => write!(f, "call of {:?}", call.target),
            CallProgress::Ended => f.write_str("call that has ended"),
        }
    }
}
