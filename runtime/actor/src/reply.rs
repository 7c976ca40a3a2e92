//! Asking: a message that carries the way for its answer.
//!
//! A [`ReplyTo`] is used once. One that is dropped unused tells the asker so at once; nobody ever waits for an
//! actor that failed or stopped. Asking never retries.

use crate::{Address, Closed};
use std::fmt;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The way back to the one who asked.
pub struct ReplyTo<T>(Box<dyn FnOnce(T) + Send + Sync>);

impl<T: 'static> ReplyTo<T> {
    /// Answers. An asker that has gone meanwhile is no error: nobody wants the answer any more.
    pub fn send(self, answer: T) {
        (self.0)(answer);
    }

    /// A way back that takes another type of answer, for example one variant of what a link carries.
    pub fn map<U>(self, map: impl FnOnce(U) -> T + Send + Sync + 'static) -> ReplyTo<U> {
        ReplyTo(Box::new(move |answer| self.send(map(answer))))
    }
}

impl<T> fmt::Debug for ReplyTo<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reply<{}>", std::any::type_name::<T>())
    }
}

impl<M: Send + 'static> Address<M> {
    /// Sends the message that `message` makes with the way for the answer, and waits for the answer.
    ///
    /// # Errors
    /// [`AskError::Closed`] when the actor has stopped; [`AskError::NoReply`] when it dropped the question:
    /// by failing, by stopping, or on purpose.
    pub async fn ask<T: Send + 'static>(&self, message: impl FnOnce(ReplyTo<T>) -> M) -> Result<T, AskError> {
        let (sender, answer) = oneshot::channel();
        let reply_to = ReplyTo(Box::new(move |answer| drop(sender.send(answer))));
        self.tell(message(reply_to)).await?;
        answer.await.map_err(|_| AskError::NoReply)
    }

    /// As [`ask`](Self::ask), with a limit for the wait for room and for the answer together.
    ///
    /// # Errors
    /// Also [`AskError::TimedOut`]. The question may still be handled; its answer goes nowhere.
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
    Closed(#[from] Closed),
    /// The question was delivered, and dropped without an answer.
    #[error("the actor dropped the question without an answer")]
    NoReply,
    /// The limit passed first.
    #[error("no answer within {limit:?}")]
    TimedOut {
        /// The limit that the asker gave.
        limit: Duration,
    },
}
