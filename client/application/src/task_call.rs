//! A call of a task: how it is to be run, and then a future of its value.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::call_state::{PreparedCall, PreparedTarget};
use crate::claim_setters::claim_setters;
use crate::error::{Error, Result};
use crate::options::{Claims, TaskOptions};
use crate::prepared_task::PreparedTask;
use crate::reference::Ref;
use crate::task::RemoteTask;

/// A call of a task: await it for its value. What is not set is as its attribute says.
///
/// The task is sent when this is first awaited, or by [`TaskCall::start`]. Dropping it before its end cancels
/// it, with all that it called.
#[must_use = "a task is called when it is awaited or started"]
pub struct TaskCall<T>(Call<T>);

impl<T> TaskCall<T> {
    /// A call with these arguments, a tuple.
    #[doc(hidden)]
    pub fn new<F: RemoteTask, V: Serialize>(arguments: V) -> TaskCall<T> {
        let prepared = PreparedTask::new(F::entry(), &arguments).map_err(Error::Refused);
        TaskCall(Call::new(prepared.map(|(task, holds)| {
            let target = PreparedTarget::Task(task);
            PreparedCall { target, holds }
        })))
    }

    claim_setters!();

    /// How often it is sent again after the end of a process that had got it; with 0 it starts at most once.
    pub fn retries(self, retries: u32) -> TaskCall<T> {
        self.set(Ok(retries), |options, retries| options.retries = retries)
    }

    /// It is cancelled, and fails with [`Error::TimedOut`], if it has not ended this long after it was sent.
    pub fn within(self, limit: Duration) -> TaskCall<T> {
        TaskCall(self.0.within(limit))
    }

    /// Sends the task, waits until its caller may have one more, and returns a reference of its value.
    ///
    /// # Errors
    /// [`Error::Refused`] if it can never run; [`Error::TimedOut`] if there was no room in time.
    pub async fn start(self) -> Result<Ref<T>> {
        self.0.start().await
    }

    /// Sends the task if its caller may have one more, and returns a reference of its value.
    ///
    /// # Errors
    /// [`Error::Full`] if it may not; [`Error::Refused`] if it can never run.
    pub fn try_start(self) -> Result<Ref<T>> {
        self.0.try_start()
    }

    /// Sends the task, and lets it go on without anybody who waits for it.
    ///
    /// # Errors
    /// [`Error::Refused`] if it can never run.
    pub fn detach(self) -> Result<()> {
        self.0.detach()
    }

    fn claim<V>(self, value: Result<V>, set: impl FnOnce(&mut Claims, V)) -> TaskCall<T> {
        self.set(value, |options, value| set(&mut options.claims, value))
    }

    fn set<V>(mut self, value: Result<V>, set: impl FnOnce(&mut TaskOptions, V)) -> TaskCall<T> {
        self.0.set(value, set);
        self
    }
}

impl<T: DeserializeOwned> Future for TaskCall<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> fmt::Debug for TaskCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
