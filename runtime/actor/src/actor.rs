//! The trait to implement: what an actor does with a message, and at the two ends of its life.
//!
//! An actor never sees two messages at once, so its fields need no locks. It never lives by its addresses: it
//! runs until it stops itself, its supervisor stops it, or it has failed too often.

use crate::{ActorFailure, Context};
use std::future::{Future, ready};

/// Something that owns state or IO, and handles one message at a time.
///
/// Write the methods as `async fn`. An error or a panic from `started` or `handle` ends this incarnation: the
/// message being handled is lost (an asker gets [`AskError::NoReply`](crate::AskError)), the rest of the
/// mailbox waits for the next incarnation, which the supervisor builds with the factory.
pub trait Actor: Sized + Send + 'static {
    /// What its mailbox holds; nearly always an enum.
    type Message: Send + 'static;

    /// Handles one message. The next one waits until this returns.
    fn handle(
        &mut self,
        message: Self::Message,
        context: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), ActorFailure>> + Send;

    /// Runs before the first message of each incarnation: the place to open what may fail to open, to spawn
    /// children, and to start timers.
    fn started(
        &mut self,
        _context: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), ActorFailure>> + Send {
        ready(Ok(()))
    }

    /// Runs after the last message when the actor stops in order, its children being gone. After a failure,
    /// or past the deadline, the actor is dropped without it.
    fn stopped(&mut self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}
