//! The task behind an actor: builds it, runs it, and after a failure restarts it, lets it end, or ends the
//! system.
//!
//! The task owns the mailbox, which is why the mailbox survives a restart.

use crate::actor::{Actor, Context};
use crate::actor_loop::ActorLoop;
use crate::failure::{ActorFailure, ActorPanic, ActorSystemError};
use crate::mailbox::{Address, Mailbox};
use crate::restart_policy::RestartHistory;
use crate::shutdown::Shutdown;
use crate::supervisor::FatalErrors;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::time::{Instant, timeout};

pub(crate) struct ActorTask<A: Actor> {
    pub(crate) path: String,
    pub(crate) source: ActorSource<A>,
    pub(crate) address: Address<A::Message>,
    pub(crate) mailbox: Mailbox<A::Message>,
    pub(crate) restarts: RestartHistory,
    pub(crate) grace: Duration,
    pub(crate) shutdown: Shutdown,
    pub(crate) fatal_errors: FatalErrors,
}

/// Where incarnations come from, which also decides what a failure means.
pub(crate) enum ActorSource<A> {
    /// Built anew after each failure, within the restart limit.
    Factory(Box<dyn FnMut() -> A + Send>),
    /// Not restarted; a failure is logged.
    Once(Option<A>),
    /// Not restarted; its end ends the system.
    Essential(Option<A>),
}

impl<A> ActorSource<A> {
    fn build(&mut self) -> Option<A> {
        match self {
            Self::Factory(factory) => Some(factory()),
            Self::Once(actor) | Self::Essential(actor) => actor.take(),
        }
    }
}

impl<A: Actor> ActorTask<A> {
    pub(crate) async fn run(mut self) {
        tracing::debug!("the actor starts");
        while let Err(failure) = self.run_incarnation().await {
            let Some(delay) = self.delay_after(failure) else { return };
            let stopped = timeout(delay, self.shutdown.requested()).await.is_ok();
            if stopped {
                return;
            }
        }
        tracing::debug!("the actor has stopped");
        if matches!(self.source, ActorSource::Essential(_)) && !self.shutdown.is_requested() {
            self.end_system(ActorSystemError::EssentialStopped { actor: self.path.clone() });
        }
    }

    /// Runs the actor once; its children are gone when this returns.
    async fn run_incarnation(&mut self) -> Result<(), ActorFailure> {
        let (shutdown, fatal_errors) = (self.shutdown.clone(), self.fatal_errors.clone());
        let mut context = Context::new(&self.path, self.address.clone(), shutdown, fatal_errors);
        let ended = AssertUnwindSafe(self.build_and_run(&mut context)).catch_unwind().await;
        context.children.stop(self.shutdown.deadline_within(self.grace)).await;
        ended.unwrap_or_else(|payload| Err(ActorPanic::from_payload(payload).into()))
    }

    async fn build_and_run(&mut self, context: &mut Context<A>) -> Result<(), ActorFailure> {
        let Some(actor) = self.source.build() else { return Ok(()) };
        ActorLoop { actor, mailbox: &mut self.mailbox, context, grace: self.grace }.run().await
    }

    /// The delay before the next incarnation; `None` if there is none.
    fn delay_after(&mut self, failure: ActorFailure) -> Option<Duration> {
        match self.source {
            ActorSource::Factory(_) if !self.shutdown.is_requested() => self.delay_before_restart(failure),
            ActorSource::Essential(_) if !self.shutdown.is_requested() => {
                let actor = self.path.clone();
                self.give_up(failure, |cause| ActorSystemError::EssentialFailed { actor, cause });
                None
            }
            ActorSource::Factory(_) | ActorSource::Once(_) | ActorSource::Essential(_) => {
                tracing::warn!(%failure, "the actor failed and ends");
                None
            }
        }
    }

    fn delay_before_restart(&mut self, failure: ActorFailure) -> Option<Duration> {
        let delay = self.restarts.next_delay(Instant::now());
        if let Some(delay) = delay {
            tracing::warn!(%failure, ?delay, "the actor failed and is restarted");
            return Some(delay);
        }
        let (actor, restarts, window) = (self.path.clone(), self.restarts.count(), self.restarts.window());
        self.give_up(failure, |cause| ActorSystemError::RestartLimit { actor, restarts, window, cause });
        None
    }

    fn give_up(
        &mut self,
        failure: ActorFailure,
        error: impl FnOnce(Box<dyn std::error::Error + Send + Sync>) -> ActorSystemError,
    ) {
        tracing::error!(%failure, "the actor failed and cannot be restarted");
        self.end_system(error(failure.into_error()));
    }

    fn end_system(&mut self, error: ActorSystemError) {
        self.mailbox.close();
        // A system that is being dropped does not listen any more.
        let _ = self.fatal_errors.send(error);
    }
}
