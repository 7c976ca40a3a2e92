//! Where to send messages: an address tells, tries to tell, and knows when its actor is gone.
//!
//! Sending is two steps, *room first, then the message*: [`Deliver`] hands out a slot, and filling a slot
//! cannot fail. So a message is never lost on the way into a mailbox, and one address can wrap another
//! ([`Address::mapped`]). An address never keeps an actor alive, and never shows whether the actor is local.

use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// Room for one message; call it with the message.
pub type SendPermit<'a, M> = Box<dyn FnOnce(M) + Send + 'a>;

/// The way to a mailbox: what an [`Address`] hides.
///
/// Local mailboxes have theirs. A network link implements it for what it can carry: `reserve` takes a place
/// in the link's bounded outbox, the slot writes the serialised message there. A [`ReplyTo`](crate::Reply)
/// cannot travel; a link for [`Call`](crate::Call)s keeps it, and sends it the response that comes back. When
/// the link breaks, the address is closed and the kept replies are dropped, so that askers learn of it.
pub trait Deliver<M>: Send + Sync + 'static {
    /// Waits for room: this is the back-pressure.
    fn reserve(&self) -> BoxFuture<'_, Result<SendPermit<'_, M>, Closed>>;

    /// Room, if there is some now.
    fn try_reserve(&self) -> Result<SendPermit<'_, M>, TryTellError<()>>;

    /// Waits until no message can arrive any more.
    fn closed(&self) -> BoxFuture<'_, ()>;

    /// Whether no message can arrive any more.
    fn is_closed(&self) -> bool;
}

/// Where to send messages of type `M`; cheap to clone.
pub struct Address<M>(Arc<dyn Deliver<M>>);

impl<M: Send + 'static> Address<M> {
    /// An address over a way of your own, such as a link to another node.
    pub fn remote(way: impl Deliver<M>) -> Self {
        Self(Arc::new(way))
    }

    /// An address for another type of message, each of which `map` turns into one of this address.
    pub fn mapped<N: Send + 'static>(&self, map: impl Fn(N) -> M + Send + Sync + 'static) -> Address<N> {
        Address::remote(MappedAddress { inner: self.clone(), map })
    }

    /// Delivers the message, after waiting for room. That it arrived does not mean that it will be handled.
    ///
    /// # Errors
    /// [`Closed`] when the actor has stopped, or stops while this waits.
    pub async fn tell(&self, message: M) -> Result<(), Closed> {
        let slot = self.0.reserve().await?;
        slot(message);
        Ok(())
    }

    /// Delivers the message if there is room now.
    ///
    /// # Errors
    /// [`TryTellError`] with the message in it, when there is not.
    pub fn try_tell(&self, message: M) -> Result<(), TryTellError<M>> {
        match self.0.try_reserve() {
            Ok(slot) => slot(message),
            Err(TryTellError::Full(())) => return Err(TryTellError::Full(message)),
            Err(TryTellError::Closed(())) => return Err(TryTellError::Closed(message)),
        }
        Ok(())
    }

    /// Waits until the actor takes no more messages.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    /// Whether the actor takes no more messages.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address<{}>", std::any::type_name::<M>())
    }
}

/// The actor has stopped: it takes no more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the actor has stopped")]
pub struct Closed;

/// Why there was no room for a message; gives it back.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TryTellError<M> {
    /// The mailbox holds as many messages as it may.
    #[error("the mailbox is full")]
    Full(M),
    /// The actor has stopped.
    #[error("the actor has stopped")]
    Closed(M),
}

/// Without the message, so that `M` need not be `Debug`.
impl<M> fmt::Debug for TryTellError<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

/// The way to an address that takes another type of message.
struct MappedAddress<M, F> {
    inner: Address<M>,
    map: F,
}

impl<N: 'static, M: Send + 'static, F: Fn(N) -> M + Send + Sync + 'static> Deliver<N>
    for MappedAddress<M, F>
{
    fn reserve(&self) -> BoxFuture<'_, Result<SendPermit<'_, N>, Closed>> {
        Box::pin(async move {
            let slot = self.inner.0.reserve().await?;
            Ok(Box::new(move |message| slot((self.map)(message))) as SendPermit<'_, N>)
        })
    }

    fn try_reserve(&self) -> Result<SendPermit<'_, N>, TryTellError<()>> {
        let slot = self.inner.0.try_reserve()?;
        Ok(Box::new(move |message| slot((self.map)(message))))
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        self.inner.0.closed()
    }

    fn is_closed(&self) -> bool {
        self.inner.0.is_closed()
    }
}
