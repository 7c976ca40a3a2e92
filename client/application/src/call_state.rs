//! A call whatever its value is: it is prepared, sent, perhaps waits for room, and ends or is cancelled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cohabit_application_core::{ActorId, CallRequest, HeldId, ObjectId};
use tokio::time::{Sleep, sleep, timeout};

use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::prepared_task::PreparedTask;
use crate::process::{
    Answer, CallLimit, CalleeKind, Hold, MemberProcess, OutgoingCall, ReferenceTerms, SentCall, StartedCall,
    StreamItem, UnendedCall, WhenFull,
};
use crate::values::held;

/// A call.
pub(crate) struct CallState {
    progress: CallProgress,
    limit: Option<Duration>,
    deadline: Option<Pin<Box<Sleep>>>,
    at_drop: AtDrop,
}

/// The process that makes calls.
type ThisProcess = &'static Arc<MemberProcess>;

/// A call that was not sent, with the handles in its arguments.
pub(crate) struct PreparedCall {
    pub(crate) target: PreparedTarget,
    pub(crate) holds: Vec<Arc<Hold>>,
}

/// What is called.
pub(crate) enum PreparedTarget {
    Method {
        hold: Arc<Hold>,
        actor: ActorId,
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
        process: ThisProcess,
        call: SentCall,
        counts: UnendedCall,
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
        let prepared = prepared?;
        let process = MemberProcess::current()?;
        let counts = UnendedCall::begin(process.unknown_calls(), prepared.callee());
        let (call, holds) = prepared.describe(&counts)?;
        let sent = process.with(|state| state.call(call, holds, when_full));
        let call = sent.map_err(Error::of_call)?;
        self.progress = CallProgress::Sent { process, call, counts };
        self.deadline = self.limit.map(|limit| Box::pin(sleep(limit)));
        Ok(())
    }

    /// Makes the call, which has a reference: waits until there is room for it.
    ///
    /// # Errors
    /// If it may not be made, or there was no room in time.
    pub(crate) async fn start(self) -> Result<(Arc<Hold>, ObjectId)> {
        let limit = self.limit;
        let (process, started) = self.pass_on(WhenFull::Wait)?;
        let object = match (started, limit) {
            (StartedCall::Made(object), _) => object,
            (StartedCall::Waits(ticket), None) => process.room(ticket).await?,
            (StartedCall::Waits(ticket), Some(limit)) => {
                timeout(limit, process.room(ticket)).await.map_err(|_| Error::TimedOut(limit))??
            }
        };
        Ok((Hold::held_already(process, HeldId::Object(object)), object))
    }

    /// Makes the call, which has a reference, if there is room for it.
    ///
    /// # Errors
    /// If there is none, or it may not be made.
    pub(crate) fn try_start(self) -> Result<(Arc<Hold>, ObjectId)> {
        let (process, started) = self.pass_on(WhenFull::Fail)?;
        match started {
            StartedCall::Made(object) => Ok((Hold::held_already(process, HeldId::Object(object)), object)),
            StartedCall::Waits(_) => Err(Error::Full),
        }
    }

    fn pass_on(mut self, when_full: WhenFull) -> Result<(ThisProcess, StartedCall)> {
        let CallProgress::Prepared(prepared) = std::mem::replace(&mut self.progress, CallProgress::Ended)
        else {
            return Err(Error::Refused("this call was awaited before: start it first".into()));
        };
        let prepared = prepared?;
        let process = MemberProcess::current()?;
        let counts = UnendedCall::begin(process.unknown_calls(), prepared.callee());
        let (call, holds) = prepared.describe(&counts)?;
        let terms = ReferenceTerms { counts, limit: self.limit.and_then(CallLimit::from_now) };
        let started = process.with(|state| state.start_call(call, holds, when_full, terms));
        Ok((process, started.map_err(Error::of_call)?))
    }

    /// Waits until there is room for the call.
    ///
    /// # Errors
    /// If there was none in time.
    pub(crate) fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_deadline(context)?;
        let CallProgress::Sent { call, counts, .. } = &mut self.progress else { return Poll::Ready(Ok(())) };
        let Some(accepted) = &mut call.accepted else { return Poll::Ready(Ok(())) };
        counts.awaited();
        // It is dropped without a word when the process ends.
        let _accepted = ready!(Pin::new(accepted).poll(context));
        call.accepted = None;
        Poll::Ready(Ok(()))
    }

    /// Makes the call, unless it was made, and waits for its answer.
    ///
    /// # Errors
    /// If it could not be made, or did not end in time, or its end was taken before.
    pub(crate) fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<(ThisProcess, Answer)>> {
        self.send(WhenFull::Wait)?;
        let CallProgress::Sent { process, call, counts } = &mut self.progress else {
            return Poll::Ready(Err(Error::Refused("this call has ended and was awaited before".into())));
        };
        let process = *process;
        let Poll::Ready(answer) = Pin::new(&mut call.answer).poll(context) else {
            counts.awaited();
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
    ) -> Poll<Result<Option<(ThisProcess, StreamItem)>>> {
        self.send(WhenFull::Wait)?;
        self.poll_deadline(context)?;
        let CallProgress::Sent { process, call, counts } = &mut self.progress else {
            return Poll::Ready(Ok(None));
        };
        counts.awaited();
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

impl PreparedCall {
    const fn callee(&self) -> CalleeKind {
        match &self.target {
            PreparedTarget::Method { .. } => CalleeKind::Other,
            PreparedTarget::Task(_) | PreparedTarget::Stream(_) => CalleeKind::Task,
        }
    }

    /// What the core gets, and what it has to hold then.
    ///
    /// # Errors
    /// If no job can claim what a task claims.
    fn describe(self, counts: &UnendedCall) -> Result<(OutgoingCall, Vec<Arc<Hold>>)> {
        let PreparedCall { target, mut holds } = self;
        let call = match target {
            PreparedTarget::Method { hold, actor, request } => {
                let carries = held(&holds);
                holds.push(hold);
                OutgoingCall::Method { actor, request, carries }
            }
            PreparedTarget::Task(task) => OutgoingCall::Task(task.describe(counts.caller(), held(&holds))?),
            PreparedTarget::Stream(task) => {
                OutgoingCall::Stream(task.describe(counts.caller(), held(&holds))?)
            }
        };
        Ok((call, holds))
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
                PreparedTarget::Method { hold, .. } => write!(f, "call of {hold:?}, not made yet"),
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
