//! A call of a task that returns a stream: how it is to be run, and then its items.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call_state::{PreparedCall, PreparedTarget};
use crate::claim_setters::claim_setters;
use crate::error::{Error, Result};
use crate::options::{Claims, TaskOptions};
use crate::prepared_task::PreparedTask;
use crate::ref_stream::RefStream;
use crate::task::RemoteTask;

/// A call of a task that returns a stream: a [`Stream`] of its items. What is not set is as its attribute
/// says.
///
/// The task is sent when this is first polled, or by [`StreamCall::start`]. Dropping it before its end
/// cancels it, with all that it called.
#[must_use = "a task is called when its stream is polled or started"]
pub struct StreamCall<T>(RefStream<T>);

impl<T> StreamCall<T> {
    /// A call with these arguments, a tuple.
    #[doc(hidden)]
    pub fn new<F: RemoteTask, V: Serialize>(arguments: V) -> StreamCall<T> {
        let prepared = PreparedTask::new(F::entry(), &arguments).map_err(Error::Refused);
        StreamCall(RefStream::new(prepared.map(|(task, holds)| {
            let target = PreparedTarget::Stream(task);
            PreparedCall { target, holds }
        })))
    }

    claim_setters!();

    /// How often it is sent again after the end of a process that had got it; with 0 it starts at most once.
    /// The next process makes the stream anew, and the items that have arrived are left out.
    pub fn retries(self, retries: u32) -> StreamCall<T> {
        self.set(Ok(retries), |options, retries| options.retries = retries)
    }

    /// It is cancelled, and fails with [`Error::TimedOut`], if its end was not reached this long after it was
    /// sent.
    pub fn within(mut self, limit: Duration) -> StreamCall<T> {
        self.0.call.limit(limit);
        self
    }

    /// Sends the task, waits until its caller may have one more, and returns the stream of its items.
    ///
    /// # Errors
    /// [`Error::Refused`] if it can never run; [`Error::TimedOut`] if there was no room in time.
    pub async fn start(self) -> Result<RefStream<T>> {
        self.0.start().await
    }

    /// Sends the task if its caller may have one more, and returns the stream of its items.
    ///
    /// # Errors
    /// [`Error::Full`] if it may not; [`Error::Refused`] if it can never run.
    pub fn try_start(self) -> Result<RefStream<T>> {
        self.0.try_start()
    }

    fn claim<V>(self, value: Result<V>, set: impl FnOnce(&mut Claims, V)) -> StreamCall<T> {
        self.set(value, |options, value| set(&mut options.claims, value))
    }

    fn set<V>(mut self, value: Result<V>, set: impl FnOnce(&mut TaskOptions, V)) -> StreamCall<T> {
        self.0.call.set(value, set);
        self
    }
}

impl<T: DeserializeOwned> Stream for StreamCall<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        Pin::new(&mut self.0).poll_next(context)
    }
}

impl<T> fmt::Debug for StreamCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
