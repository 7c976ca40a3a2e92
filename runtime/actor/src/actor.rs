//! The trait that an actor implements, and the context that it acts through.
//!
//! An actor handles one message at a time, so its fields need no locks. Dropping its addresses does not end
//! it: it runs until it stops itself, its supervisor stops it, or it fails for good.

use crate::failure::{ActorFailure, ActorPanic};
use crate::mailbox::Address;
use crate::shutdown::Shutdown;
use crate::supervisor::{FatalErrors, Supervisor};
use std::future::{Future, pending, ready};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::sleep;

/// An owner of state or IO that handles one message at a time.
///
/// Write the methods as `async fn`. An error or a panic in `started` or `handle` ends this incarnation. The
/// message at hand is lost (an asker gets [`AskError::NoReply`](crate::AskError)); the rest of the mailbox
/// waits for the next incarnation, if there is one. How the actor was spawned decides that.
pub trait Actor: Sized + Send + 'static {
    /// What its mailbox holds; nearly always an enum.
    type Message: Send + 'static;

    /// Handles one message. The next one waits until this returns.
    fn handle(
        &mut self,
        message: Self::Message,
        context: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), ActorFailure>> + Send;

    /// Runs before the first message of each incarnation: opens what may fail to open, spawns children,
    /// starts timers.
    fn started(
        &mut self,
        _context: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), ActorFailure>> + Send {
        ready(Ok(()))
    }

    /// Runs after the last message of an orderly stop, when all children are gone. It does not run after a
    /// failure or past the deadline.
    fn stopped(&mut self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// What a running actor can reach: its own address, its children, its timers and side tasks, the shutdown
/// signal.
///
/// A context lives as long as one incarnation and ends what it started: children stop in order, timers and
/// side tasks are cancelled. `spawn.rs` has the methods that spawn children.
pub struct Context<A: Actor> {
    pub(crate) address: Address<A::Message>,
    pub(crate) children: Supervisor,
    pub(crate) shutdown: Shutdown,
    tasks: JoinSet<()>,
    control: LoopControl,
}

/// Whether the actor goes on after the message at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopControl {
    Continue,
    Stop,
}

impl<A: Actor> Context<A> {
    pub(crate) fn new(
        path: &str,
        address: Address<A::Message>,
        shutdown: Shutdown,
        fatal_errors: FatalErrors,
    ) -> Self {
        let (children, control) = (Supervisor::new(path, fatal_errors), LoopControl::Continue);
        Self { address, children, shutdown, tasks: JoinSet::new(), control }
    }

    /// The actor's own address; the same for all incarnations.
    pub fn address(&self) -> &Address<A::Message> {
        &self.address
    }

    /// Sends the actor this message after the span, unless the incarnation has ended by then.
    pub fn send_after(&mut self, span: Duration, message: A::Message) -> TaskHandle {
        let address = self.address.clone();
        TaskHandle(self.tasks.spawn(async move {
            sleep(span).await;
            let _ = address.tell(message).await;
        }))
    }

    /// Sends the actor a message repeatedly. Each span begins when the previous message was queued, so a
    /// full mailbox delays messages and never bunches them.
    pub fn send_every(&mut self, span: Duration, mut message: impl FnMut() -> A::Message + Send + 'static) {
        let address = self.address.clone();
        self.spawn_task(async move {
            sleep(span).await;
            while address.tell(message()).await.is_ok() {
                sleep(span).await;
            }
        });
    }

    /// Runs the future beside the actor, and sends the actor the message that `message` makes of its output.
    pub fn pipe_to_self<T>(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
        message: impl FnOnce(T) -> A::Message + Send + 'static,
    ) {
        let address = self.address.clone();
        self.spawn_task(async move {
            let message = message(future.await);
            // An actor that has stopped needs no result.
            let _ = address.tell(message).await;
        });
    }

    /// Runs a task beside the actor, such as the reading half of a connection. The task talks to the actor
    /// by messages. Its panic fails the actor, and the end of the incarnation cancels it.
    pub fn spawn_task(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Stops the actor after the message at hand. Messages still in the mailbox are dropped.
    pub fn stop(&mut self) {
        self.control = LoopControl::Stop;
    }

    /// The signal that the supervisor wants the actor to stop.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    pub(crate) fn should_continue(&self) -> bool {
        self.control == LoopControl::Continue
    }

    /// Waits for a panic in a side task; never returns if there is none.
    pub(crate) async fn next_failure(&mut self) -> ActorFailure {
        while let Some(ended) = self.tasks.join_next().await {
            if let Some(panic) = ended.err().and_then(panic_of) {
                return panic.into();
            }
        }
        pending().await
    }
}

fn panic_of(error: JoinError) -> Option<ActorPanic> {
    error.try_into_panic().ok().map(ActorPanic::from_payload)
}

/// A running timer. Dropping the handle does not cancel it.
#[derive(Debug, Clone)]
pub struct TaskHandle(AbortHandle);

impl TaskHandle {
    /// Cancels the timer. A message that it has already queued stays in the mailbox.
    pub fn cancel(&self) {
        self.0.abort();
    }
}
