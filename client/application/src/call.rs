//! A call of a method of an actor: a future of its value.

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
use crate::process::{ActorHold, Answer, MemberProcess, SentCall};
use crate::values::decode;

/// A call: await it for its value.
///
/// It is made when it is first awaited, or by [`Call::start`]; the calls of one process to an actor start in
/// the order in which they were made. Dropping it before its end cancels it: it never starts, or ends at its
/// next await.
#[must_use = "a call is made when it is awaited or started"]
pub struct Call<T> {
    hold: Arc<ActorHold>,
    progress: CallProgress,
    limit: Option<Duration>,
    deadline: Option<Pin<Box<Sleep>>>,
    at_drop: AtDrop,
    value: PhantomData<fn() -> T>,
}

enum CallProgress {
    /// Nothing was sent.
    Prepared(Result<(CallRequest, Vec<Arc<ActorHold>>)>),
    Sent(SentCall),
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
    pub(crate) fn new(hold: Arc<ActorHold>, prepared: Result<(CallRequest, Vec<Arc<ActorHold>>)>) -> Call<T> {
        let progress = CallProgress::Prepared(prepared);
        Call { hold, progress, limit: None, deadline: None, at_drop: AtDrop::Cancel, value: PhantomData }
    }

    /// It is cancelled, and fails with [`Error::TimedOut`], if it has not ended this long after it was made.
    pub fn within(mut self, limit: Duration) -> Call<T> {
        self.limit = Some(limit);
        self
    }

    /// Makes the call, waits until the queue to the actor has room for it, and returns it: await it for its
    /// value.
    ///
    /// # Errors
    /// [`Error::Refused`] if it may not be made; [`Error::TimedOut`] if there was no room in time.
    pub async fn start(mut self) -> Result<Call<T>> {
        self.send()?;
        poll_fn(|context| self.poll_room(context)).await?;
        Ok(self)
    }

    /// Makes the call if the queue to the actor has room for it, and returns it.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none; [`Error::Refused`] if it may not be made.
    pub fn try_start(mut self) -> Result<Call<T>> {
        let actor = self.hold.actor();
        if !self.hold.process().with(|state| state.has_room(actor)) {
            return Err(Error::Full);
        }
        self.send()?;
        Ok(self)
    }

    /// Makes the call, unless it was made, and lets it go on without anybody who waits for it.
    ///
    /// # Errors
    /// [`Error::Refused`] if it may not be made.
    pub fn detach(mut self) -> Result<()> {
        self.send()?;
        self.at_drop = AtDrop::GoOn;
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let CallProgress::Prepared(_) = &self.progress else { return Ok(()) };
        let CallProgress::Prepared(prepared) = std::mem::replace(&mut self.progress, CallProgress::Ended)
        else {
            return Ok(());
        };
        let (request, mut holds) = prepared?;
        holds.push(Arc::clone(&self.hold));
        let actor = self.hold.actor();
        let sent = self.hold.process().with(|state| state.call(actor, request, holds));
        self.progress = CallProgress::Sent(sent.map_err(Error::of_call)?);
        self.deadline = self.limit.map(|limit| Box::pin(sleep(limit)));
        Ok(())
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_deadline(context)?;
        let CallProgress::Sent(sent) = &mut self.progress else { return Poll::Ready(Ok(())) };
        let Some(accepted) = &mut sent.accepted else { return Poll::Ready(Ok(())) };
        // It is dropped without a word when the process ends.
        let _accepted = ready!(Pin::new(accepted).poll(context));
        sent.accepted = None;
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
        let CallProgress::Sent(mut sent) = std::mem::replace(&mut self.progress, CallProgress::Ended) else {
            return;
        };
        let process = self.hold.process();
        sent.answer.close();
        match sent.answer.try_recv() {
            Ok(Answer { carries, .. }) => process.release(carries),
            Err(_) if self.at_drop == AtDrop::Cancel => process.with(|state| state.cancel(&sent)),
            Err(_) => {}
        }
    }
}

impl<T: DeserializeOwned> Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.send()?;
        let CallProgress::Sent(sent) = &mut self.progress else {
            return Poll::Ready(Err(Error::Refused("this call has ended and was awaited before".into())));
        };
        let Poll::Ready(answer) = Pin::new(&mut sent.answer).poll(context) else {
            self.poll_deadline(context)?;
            return Poll::Pending;
        };
        self.progress = CallProgress::Ended;
        Poll::Ready(match answer {
            Ok(answer) => read(self.hold.process(), answer),
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
        write!(f, "call of {:?}", self.hold)
    }
}
