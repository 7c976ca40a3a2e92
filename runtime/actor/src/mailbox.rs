//! A bounded queue of messages: the address is one end, the mailbox is the other.
//!
//! Actors get theirs from the supervisor, which keeps it over restarts. Take one of your own for a link that
//! carries what it receives to another node, or for a test that plays an actor. A mailbox never grows past
//! its capacity.

use crate::Address;
use crate::address::{Closed, Deliver, SendPermit, TryTellError};
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// A mailbox with room for `capacity` messages (at least one), and its address.
pub fn mailbox<M: Send + 'static>(capacity: usize) -> (Address<M>, Mailbox<M>) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (Address::remote(sender), Mailbox(receiver))
}

/// The receiving end. Dropping it closes the address and drops what is still in it.
#[derive(Debug)]
pub struct Mailbox<M>(mpsc::Receiver<M>);

impl<M> Mailbox<M> {
    /// The next message; `None` when the mailbox is closed, or all its addresses are dropped, and it is
    /// empty.
    pub async fn receive(&mut self) -> Option<M> {
        self.0.recv().await
    }

    /// Takes no more messages; those in it can still be received.
    pub fn close(&mut self) {
        self.0.close();
    }
}

impl<M: Send + 'static> Deliver<M> for mpsc::Sender<M> {
    fn reserve(&self) -> BoxFuture<'_, Result<SendPermit<'_, M>, Closed>> {
        Box::pin(async move {
            let permit = mpsc::Sender::reserve(self).await.map_err(|_| Closed)?;
            Ok(Box::new(move |message| permit.send(message)) as SendPermit<'_, M>)
        })
    }

    fn try_reserve(&self) -> Result<SendPermit<'_, M>, TryTellError<()>> {
        match mpsc::Sender::try_reserve(self) {
            Ok(permit) => Ok(Box::new(move |message| permit.send(message))),
            Err(TrySendError::Full(())) => Err(TryTellError::Full(())),
            Err(TrySendError::Closed(())) => Err(TryTellError::Closed(())),
        }
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(mpsc::Sender::closed(self))
    }

    fn is_closed(&self) -> bool {
        mpsc::Sender::is_closed(self)
    }
}
