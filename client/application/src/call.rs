//! A call of a method of an actor, or of a task: a future of its value.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cohabit_application_core::{CallError, CallValue};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::call_state::{CallState, PreparedCall};
use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::process::{Answer, CarriedHandles, FetchedValue, MemberProcess, WhenFull};
use crate::reference::Ref;
use crate::values::VALUE;

/// A call: await it for its value.
///
/// It is made when it is first awaited, or by [`Call::start`]; the calls of one process to an actor start in
/// the order in which they were made. Dropping it before its end cancels it: it never starts, or ends at its
/// next await.
#[must_use = "a call is made when it is awaited or started"]
pub struct Call<T> {
    state: CallState,
    /// The value, if it is large.
    fetching: Option<Fetching>,
    value: PhantomData<fn() -> T>,
}

type Fetching = BoxFuture<'static, Result<FetchedValue, CallError>>;

impl<T> Call<T> {
    pub(crate) const fn new(prepared: Result<PreparedCall>) -> Call<T> {
        Call { state: CallState::new(prepared), fetching: None, value: PhantomData }
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

    /// Makes the call, waits until there is room for it in the queue to the actor, and returns a reference of
    /// its value.
    ///
    /// # Errors
    /// [`Error::Refused`] if it may not be made; [`Error::TimedOut`] if there was no room in time.
    pub async fn start(self) -> Result<Ref<T>> {
        let (hold, object) = self.state.start().await?;
        Ok(Ref::new(hold, object))
    }

    /// Makes the call if there is room for it in the queue to the actor, and returns a reference of its
    /// value.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none; [`Error::Refused`] if it may not be made.
    pub fn try_start(self) -> Result<Ref<T>> {
        let (hold, object) = self.state.try_start()?;
        Ok(Ref::new(hold, object))
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
        if self.fetching.is_none() {
            let (process, answer) = ready!(self.state.poll_answer(context))?;
            match value_of(process, answer) {
                AnswerValue::Here(value) => return Poll::Ready(read(value)),
                AnswerValue::Stored(fetching) => self.fetching = Some(fetching),
            }
        }
        let Some(fetching) = &mut self.fetching else { return Poll::Pending };
        let fetched = ready!(fetching.as_mut().poll(context));
        self.fetching = None;
        Poll::Ready(read(fetched))
    }
}

/// The value in an answer.
enum AnswerValue {
    /// It came with the answer.
    Here(Result<FetchedValue, CallError>),
    Stored(Fetching),
}

fn value_of(process: &'static Arc<MemberProcess>, Answer { result, carries }: Answer) -> AnswerValue {
    let carried = CarriedHandles::new(process, carries);
    match result {
        Ok(CallValue::Inline(bytes)) => AnswerValue::Here(Ok(FetchedValue::inline(bytes, carried))),
        Ok(CallValue::Stored(stored)) => AnswerValue::Stored(Box::pin(process.fetch_stored(stored, carried))),
        Err(error) => AnswerValue::Here(Err(error)),
    }
}

fn read<T: DeserializeOwned>(fetched: Result<FetchedValue, CallError>) -> Result<T> {
    fetched.and_then(|fetched| fetched.decode(VALUE)).map_err(Error::of_call)
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}
