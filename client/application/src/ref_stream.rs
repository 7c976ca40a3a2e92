//! The stream of a task that was begun.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use serde::de::DeserializeOwned;

use crate::call_state::{CallState, PreparedCall};
use crate::error::{Error, Result};
use crate::process::WhenFull;
use crate::values::{ITEM, decode};

/// The items of a task, in the order in which it makes them: a [`Stream`].
///
/// An error is the last item. The task makes no further item while 8 items or 64 MiB have not been taken.
/// Dropping the stream before its end cancels the task, with all that it called.
#[must_use = "a stream that is dropped cancels its task"]
pub struct RefStream<T> {
    pub(crate) call: CallState,
    item: PhantomData<fn() -> T>,
}

impl<T> RefStream<T> {
    pub(crate) const fn new(prepared: Result<PreparedCall>) -> RefStream<T> {
        RefStream { call: CallState::new(prepared), item: PhantomData }
    }

    /// Sends the task, and waits until there is room for it.
    pub(crate) async fn start(mut self) -> Result<RefStream<T>> {
        self.call.send(WhenFull::Wait)?;
        poll_fn(|context| self.call.poll_room(context)).await?;
        Ok(self)
    }

    /// Sends the task, if there is room for it.
    pub(crate) fn try_start(mut self) -> Result<RefStream<T>> {
        self.call.send(WhenFull::Fail)?;
        Ok(self)
    }
}

impl<T: DeserializeOwned> Stream for RefStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let Some((process, arrived)) = ready!(self.call.poll_item(context))? else {
            return Poll::Ready(None);
        };
        let item = decode(&arrived.item, ITEM).map_err(Error::Refused);
        // What was decoded counts for itself.
        process.release(arrived.carries);
        if item.is_err() {
            self.call.cancel();
        }
        Poll::Ready(Some(item))
    }
}

impl<T> fmt::Debug for RefStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
