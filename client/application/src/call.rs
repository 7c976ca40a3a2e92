//! A call of a method of an actor, or of a task: a future of its value.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::call_state::{CallState, PreparedCall};
use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::process::{Answer, MemberProcess, WhenFull};
use crate::values::decode;

/// A call: await it for its value.
///
/// It is made when it is first awaited, or by [`Call::start`]; the calls of one process to an actor start in
/// the order in which they were made. Dropping it before its end cancels it: it never starts, or ends at its
/// next await.
#[must_use = "a call is made when it is awaited or started"]
pub struct Call<T> {
    state: CallState,
    value: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    pub(crate) const fn new(prepared: Result<PreparedCall>) -> Call<T> {
        Call { state: CallState::new(prepared), value: PhantomData }
    }

    /// Changes the options of a call of a task that was not sent.
    pub(crate) fn set<V>(&mut self, value: Result<V>, set: impl FnOnce(&mut TaskOptions, V)) {
        self.state.set(value, set);
    }

    /// It is cancelled, and fails with [`Error::TimedOut`], if it has not ended this long after it was made.
    pub fn within(mut self, limit: Duration) -> Call<T> {
        self.state.limit(limit);
        self
    }

    /// Makes the call, waits until there is room for it in the queue to the actor, and returns it: await it
    /// for its value.
    ///
    /// # Errors
    /// [`Error::Refused`] if it may not be made; [`Error::TimedOut`] if there was no room in time.
    pub async fn start(mut self) -> Result<Call<T>> {
        self.state.send(WhenFull::Wait)?;
        poll_fn(|context| self.state.poll_room(context)).await?;
        Ok(self)
    }

    /// Makes the call if there is room for it in the queue to the actor, and returns it.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none; [`Error::Refused`] if it may not be made.
    pub fn try_start(mut self) -> Result<Call<T>> {
        self.state.send(WhenFull::Fail)?;
        Ok(self)
    }

    /// Makes the call, unless it was made, and lets it go on without anybody who waits for it.
    ///
    /// # Errors
    /// [`Error::Refused`] if it may not be made.
    pub fn detach(mut self) -> Result<()> {
        self.state.send(WhenFull::Wait)?;
        self.state.detach();
        Ok(())
    }
}

impl<T: DeserializeOwned> Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let (process, answer) = ready!(self.state.poll_answer(context))?;
        Poll::Ready(read(process, answer))
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

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}
