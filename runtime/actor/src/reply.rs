//! Questions: messages that carry a [`ReplyTo`] for the answer.
//!
//! A `ReplyTo` is used once. Dropping it unused tells the asker at once, so nobody waits for an actor that
//! failed or stopped. Questions are never retried.

use crate::mailbox::{Address, TellError};
use std::fmt;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Takes the answer to a question back to the asker.
pub struct ReplyTo<T>(oneshot::Sender<T>);

impl<T> ReplyTo<T> {
    /// Answers. It is no error if the asker has gone.
    pub fn send(self, answer: T) {
        let _ = self.0.send(answer);
    }
}

impl<T> fmt::Debug for ReplyTo<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ReplyTo<{}>", std::any::type_name::<T>())
    }
}

impl<M: Send + 'static> Address<M> {
    /// Sends the message that `message` makes of a [`ReplyTo`], and waits for the answer.
    ///
    /// # Errors
    /// [`AskError::Closed`] when the actor has stopped; [`AskError::NoReply`] when it dropped the question:
    /// because it failed, because it stopped, or on purpose.
    pub async fn ask<T: Send + 'static>(&self, message: impl FnOnce(ReplyTo<T>) -> M) -> Result<T, AskError> {
        let (sender, answer) = oneshot::channel();
        self.tell(message(ReplyTo(sender))).await?;
        answer.await.map_err(|_| AskError::NoReply)
    }

    /// As [`ask`](Self::ask), with one limit on the wait for room and for the answer together.
    ///
    /// # Errors
    /// Also [`AskError::TimedOut`]. The question may still be handled; its answer is dropped.
    pub async fn ask_within<T: Send + 'static>(
        &self,
        limit: Duration,
        message: impl FnOnce(ReplyTo<T>) -> M,
    ) -> Result<T, AskError> {
        timeout(limit, self.ask(message)).await.unwrap_or(Err(AskError::TimedOut { limit }))
    }
}

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The question was not delivered.
    #[error(transparent)]
    Closed(#[from] TellError),
    /// The actor dropped the question.
    #[error("the actor dropped the question without an answer")]
    NoReply,
    /// The limit passed first.
    #[error("no answer within {limit:?}")]
    TimedOut {
        /// The limit that the asker gave.
        limit: Duration,
    },
}
