//! A call of a method of an actor, or of a task: a future of its value.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cohabit_application_core::CallRequest;
use serde::de::DeserializeOwned;
use tokio::time::{Sleep, sleep};

use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::prepared_task::PreparedTask;
use crate::process::{ActorHold, Answer, MemberProcess, OutgoingCall, SentCall, UnendedCall, WhenFull};
use crate::values::decode;

/// A call: await it for its value.
///
/// It is made when it is first awaited, or by [`Call::start`]; the calls of one process to an actor start in
/// the order in which they were made. Dropping it before its end cancels it: it never starts, or ends at its
/// next await.
#[must_use = "a call is made when it is awaited or started"]
pub struct Call<T> {
    progress: CallProgress,
    limit: Option<Duration>,
    deadline: Option<Pin<Box<Sleep>>>,
    at_drop: AtDrop,
    value: PhantomData<fn() -> T>,
}

/// A call that was not sent, with the handles in its arguments.
pub(crate) struct PreparedCall {
    pub(crate) target: PreparedTarget,
    pub(crate) holds: Vec<Arc<ActorHold>>,
}

/// What is called.
pub(crate) enum PreparedTarget {
    Method { actor: Arc<ActorHold>, request: CallRequest },
    Task(PreparedTask),
}

enum CallProgress {
    /// Nothing was sent.
    Prepared(Result<PreparedCall>),
    Sent {
        process: &'static MemberProcess,
        call: SentCall,
        _counts: UnendedCall,
    },
    /// Its value was taken.
    Ended,
}

/// What becomes of a call whose future is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtDrop {
    Cancel,
    GoOn,
}

impl<T> Call<T> {
    pub(crate) const fn new(prepared: Result<PreparedCall>) -> Call<T> {
        let progress = CallProgress::Prepared(prepared);
        Call { progress, limit: None, deadline: None, at_drop: AtDrop::Cancel, value: PhantomData }
    }

    /// Changes the options of a call of a task that was not sent.
    pub(crate) fn set<V>(&mut self, value: Result<V>, set: impl FnOnce(&mut TaskOptions, V)) {
        let CallProgress::Prepared(prepared) = &mut self.progress else { return };
        match (&mut *prepared, value) {
            (Ok(PreparedCall { target: PreparedTarget::Task(task), .. }), Ok(value)) => {
                set(&mut task.options, value);
            }
            (Ok(_), Err(error)) => *prepared = Err(error),
            (Ok(_) | Err(_), Ok(_) | Err(_)) => {}
        }
    }

    /// It is cancelled, and fails with [`Error::TimedOut`], if it has not ended this long after it was made.
    pub fn within(mut self, limit: Duration) -> Call<T> {
        self.limit = Some(limit);
        self
    }

    /// Makes the call, waits until there is room for it in the queue to the actor, and returns it: await it
    /// for its value.
    ///
    /// # Errors
    /// [`Error::Refused`] if it may not be made; [`Error::TimedOut`] if there was no room in time.
    pub async fn start(mut self) -> Result<Call<T>> {
        self.send(WhenFull::Wait)?;
        poll_fn(|context| self.poll_room(context)).await?;
        Ok(self)
    }

    /// Makes the call if there is room for it in the queue to the actor, and returns it.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none; [`Error::Refused`] if it may not be made.
    pub fn try_start(mut self) -> Result<Call<T>> {
        self.send(WhenFull::Fail)?;
        Ok(self)
    }

    /// Makes the call, unless it was made, and lets it go on without anybody who waits for it.
    ///
    /// # Errors
    /// [`Error::Refused`] if it may not be made.
    pub fn detach(mut self) -> Result<()> {
        self.send(WhenFull::Wait)?;
        self.at_drop = AtDrop::GoOn;
        Ok(())
    }

    fn send(&mut self, when_full: WhenFull) -> Result<()> {
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
        };
        let sent = process.with(|state| state.call(call, holds, when_full));
        let call = sent.map_err(Error::of_call)?;
        self.progress = CallProgress::Sent { process, call, _counts: counts };
        self.deadline = self.limit.map(|limit| Box::pin(sleep(limit)));
        Ok(())
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_deadline(context)?;
        let CallProgress::Sent { call, .. } = &mut self.progress else { return Poll::Ready(Ok(())) };
        let Some(accepted) = &mut call.accepted else { return Poll::Ready(Ok(())) };
        // It is dropped without a word when the process ends.
        let _accepted = ready!(Pin::new(accepted).poll(context));
        call.accepted = None;
        Poll::Ready(Ok(()))
    }

    /// Cancels the call when its time is over.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Result<()> {
        let (Some(deadline), Some(limit)) = (&mut self.deadline, self.limit) else { return Ok(()) };
        if deadline.as_mut().poll(context).is_pending() {
            return Ok(());
        }
        self.cancel();
        Err(Error::TimedOut(limit))
    }

    fn cancel(&mut self) {
        let ended = std::mem::replace(&mut self.progress, CallProgress::Ended);
        let CallProgress::Sent { process, mut call, .. } = ended else { return };
        call.answer.close();
        match call.answer.try_recv() {
            Ok(Answer { carries, .. }) => process.release(carries),
            Err(_) if self.at_drop == AtDrop::Cancel => process.with(|state| state.cancel(&call)),
            Err(_) => {}
        }
    }
}

impl<T: DeserializeOwned> Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
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
        Poll::Ready(match answer {
            Ok(answer) => read(process, answer),
            Err(_) => Err(Error::Cancelled),
        })
    }
}

/// The value in an answer, whose handles count for themselves once they are decoded.
fn read<T: DeserializeOwned>(process: &MemberProcess, answer: Answer) -> Result<T> {
    let value = match answer.result {
        Ok(bytes) => decode(&bytes, "the value of the call").map_err(Error::Refused),
        Err(error) => Err(Error::of_call(error)),
    };
    process.release(answer.carries);
    value
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.progress {
            CallProgress::Prepared(Ok(prepared)) => match &prepared.target {
                PreparedTarget::Method { actor, .. } => write!(f, "call of {actor:?}, not made yet"),
                PreparedTarget::Task(task) => {
                    write!(f, "call of task {}, not made yet", task.entry.origin.name)
                }
            },
            CallProgress::Prepared(Err(error)) => write!(f, "call that cannot be made: {error}"),
            CallProgress::Sent { call, .. } => write!(f, "call of {:?}", call.target),
            CallProgress::Ended => f.write_str("call that has ended"),
        }
    }
}
