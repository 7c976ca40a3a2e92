//! One incarnation of an actor, from `started` to `stopped`.
//!
//! ```text
//! started ─► serving ──context.stop()──► mailbox dropped ─► children stop ───────────────┐
//!               │                                                                        ├─► stopped
//!               └──shutdown requested─► children stop, still serving ─► mailbox drained ─┘
//! ```
//!
//! Any error on the way ends the incarnation without `stopped`. `actor_task.rs` decides about a restart.

use crate::actor::{Actor, Context};
use crate::failure::ActorFailure;
use crate::mailbox::Mailbox;
use futures::FutureExt;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub(crate) struct ActorLoop<'a, A: Actor> {
    pub(crate) actor: A,
    pub(crate) mailbox: &'a mut Mailbox<A::Message>,
    pub(crate) context: &'a mut Context<A>,
    pub(crate) grace: Duration,
}

impl<A: Actor> ActorLoop<'_, A> {
    pub(crate) async fn run(mut self) -> Result<(), ActorFailure> {
        self.actor.started(self.context).await?;
        self.serve().await?;
        if self.context.should_continue() {
            self.stop_by_supervisor().await?;
        }
        if !self.context.should_continue() {
            self.stop_self().await;
        }
        self.actor.stopped().await;
        Ok(())
    }

    /// Handles messages until the actor stops itself or its supervisor stops it.
    async fn serve(&mut self) -> Result<(), ActorFailure> {
        let shutdown = self.context.shutdown();
        while self.context.should_continue() {
            let message = tokio::select! {
                biased;
                () = shutdown.requested() => return Ok(()),
                failure = self.context.next_failure() => return Err(failure),
                Some(message) = self.mailbox.receive() => message,
            };
            self.actor.handle(message, self.context).await?;
        }
        Ok(())
    }

    /// The supervisor's stop. The actor handles messages until its children are gone, because children may
    /// send it their last ones.
    async fn stop_by_supervisor(&mut self) -> Result<(), ActorFailure> {
        let mut children = self.stop_children();
        while self.context.should_continue() {
            let message = tokio::select! {
                biased;
                _ = &mut children => break,
                failure = self.context.next_failure() => return Err(failure),
                Some(message) = self.mailbox.receive() => message,
            };
            self.actor.handle(message, self.context).await?;
        }
        self.drain().await
    }

    async fn drain(&mut self) -> Result<(), ActorFailure> {
        self.mailbox.close();
        while self.context.should_continue() {
            let Some(message) = self.mailbox.receive().await else { break };
            self.actor.handle(message, self.context).await?;
        }
        Ok(())
    }

    /// The actor's own stop. Dropping the queued messages first frees those who wait for a reply.
    async fn stop_self(&mut self) {
        self.mailbox.close();
        while let Some(Some(message)) = self.mailbox.receive().now_or_never() {
            drop(message);
        }
        // An error would mean that the task was cancelled, which only the end of the process does.
        let _ = self.stop_children().await;
    }

    /// Stops the children in a task, so that the actor can handle messages meanwhile. They have half of the
    /// actor's time, so that a child that hangs leaves the actor time for its own orderly end.
    fn stop_children(&self) -> JoinHandle<Vec<String>> {
        let now = Instant::now();
        let deadline = self.context.shutdown.deadline_within(self.grace);
        let halfway = now + deadline.saturating_duration_since(now) / 2;
        tokio::spawn(self.context.children.stop(halfway))
    }
}
