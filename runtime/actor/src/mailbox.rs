//! A bounded queue of messages. The [`Address`] is its sending end, the [`Mailbox`] its receiving end.
//!
//! An actor's mailbox belongs to its task and survives restarts of the actor. Code that is not an actor,
//! such as a thread or a session, creates a mailbox of its own. An address does not keep an actor alive.

use std::fmt;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// A mailbox with room for `capacity` messages (at least one), and its address.
pub fn mailbox<M: Send + 'static>(capacity: usize) -> (Address<M>, Mailbox<M>) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (Address(sender), Mailbox(receiver))
}

/// The receiving end. Dropping it closes the address and drops the messages that are still queued.
#[derive(Debug)]
pub struct Mailbox<M>(mpsc::Receiver<M>);

impl<M> Mailbox<M> {
    /// The next message; `None` once the mailbox is closed, or all its addresses are dropped, and it is
    /// empty.
    pub async fn receive(&mut self) -> Option<M> {
        self.0.recv().await
    }

    /// Refuses further messages; queued ones can still be received.
    pub fn close(&mut self) {
        self.0.close();
    }
}

/// Where to send messages of type `M`; cheap to clone.
pub struct Address<M>(mpsc::Sender<M>);

impl<M: Send + 'static> Address<M> {
    /// Queues the message, after waiting for room. That it is queued does not mean that it will be handled.
    ///
    /// # Errors
    /// [`TellError`] when the actor has stopped, or stops while this waits.
    pub async fn tell(&self, message: M) -> Result<(), TellError> {
        self.0.send(message).await.map_err(|_| TellError)
    }

    /// Queues the message if there is room now.
    ///
    /// # Errors
    /// [`TryTellError`], which returns the message, when there is none.
    pub fn try_tell(&self, message: M) -> Result<(), TryTellError<M>> {
        self.0.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) => TryTellError::Full(message),
            TrySendError::Closed(message) => TryTellError::Closed(message),
        })
    }
}

#[cfg(test)]
impl<M> Address<M> {
    /// Waits until the actor takes no more messages.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }

    /// Whether the actor takes no more messages.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address<{}>", std::any::type_name::<M>())
    }
}

/// The actor has stopped and takes no more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the actor has stopped")]
pub struct TellError;

/// Why a message was not queued; returns it.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TryTellError<M> {
    /// The mailbox is full.
    #[error("the mailbox is full")]
    Full(M),
    /// The actor has stopped.
    #[error("the actor has stopped")]
    Closed(M),
}

/// Omits the message, so that `M` need not be `Debug`.
impl<M> fmt::Debug for TryTellError<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}
