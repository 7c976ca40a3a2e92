//! The task behind an actor: builds it, lets it live, and after a failure restarts it or gives it up.
//!
//! The keeper owns the mailbox, which is why the mailbox survives a restart. It never looks at messages, and
//! never decides about siblings: one failure concerns one actor and its children.

use crate::failure::{ActorFailure, ActorPanic, Escalation};
use crate::life::ActorLoop;
use crate::restart::RestartHistory;
use crate::{Actor, Address, Context, Mailbox, Registry, Shutdown};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

pub(crate) struct ActorTask<A: Actor> {
    pub(crate) path: String,
    pub(crate) origin: ActorSource<A>,
    pub(crate) address: Address<A::Message>,
    pub(crate) mailbox: Mailbox<A::Message>,
    pub(crate) restarts: RestartHistory,
    pub(crate) grace: Duration,
    pub(crate) shutdown: Shutdown,
    pub(crate) parent: mpsc::UnboundedSender<Escalation>,
    pub(crate) registry: Registry,
}

/// Where incarnations come from.
pub(crate) enum ActorSource<A> {
    Factory(Box<dyn FnMut() -> A + Send>),
    Once(Option<A>),
}

impl<A> ActorSource<A> {
    fn build(&mut self) -> Option<A> {
        match self {
            Self::Factory(factory) => Some(factory()),
            Self::Once(actor) => actor.take(),
        }
    }
}

impl<A: Actor> ActorTask<A> {
    pub(crate) async fn run(mut self) {
        tracing::debug!("starts");
        while let Err(failure) = self.incarnation().await {
            let Some(delay) = self.delay_after(failure) else { return };
            let stopped = timeout(delay, self.shutdown.requested()).await.is_ok();
            if stopped {
                return;
            }
        }
        tracing::debug!("has stopped");
    }

    /// Lets the actor live once; its children are gone when this returns.
    async fn incarnation(&mut self) -> Result<(), ActorFailure> {
        let (shutdown, registry) = (self.shutdown.clone(), self.registry.clone());
        let mut context = Context::new(&self.path, self.address.clone(), shutdown, registry);
        let life = AssertUnwindSafe(self.life(&mut context)).catch_unwind().await;
        context.children().stop(self.shutdown.deadline_within(self.grace)).await;
        life.unwrap_or_else(|payload| Err(ActorPanic::from_payload(payload).into()))
    }

    async fn life(&mut self, context: &mut Context<A>) -> Result<(), ActorFailure> {
        let Some(actor) = self.origin.build() else { return Ok(()) };
        ActorLoop { actor, mailbox: &mut self.mailbox, context, grace: self.grace }.run().await
    }

    /// How long to wait before the next incarnation; `None` if there is none.
    fn delay_after(&mut self, failure: ActorFailure) -> Option<Duration> {
        if matches!(self.origin, ActorSource::Once(_)) || self.shutdown.is_requested() {
            tracing::warn!(%failure, "failed, and ends");
            return None;
        }
        match self.restarts.next_delay(Instant::now()) {
            Some(delay) => {
                tracing::warn!(%failure, ?delay, "failed, and is restarted");
                Some(delay)
            }
            None => {
                self.escalate(failure);
                None
            }
        }
    }

    fn escalate(&mut self, failure: ActorFailure) {
        tracing::error!(%failure, "failed too often, and is given up");
        self.mailbox.close();
        let escalated = Escalation {
            actor: self.path.clone(),
            restarts: self.restarts.count(),
            window: self.restarts.window(),
            cause: failure.into_error(),
        };
        // The parent is gone when it is being dropped itself; then there is nobody to tell.
        let _ = self.parent.send(escalated);
    }
}
