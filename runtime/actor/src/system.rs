//! The root of a daemon's actors.
//!
//! It ends when the daemon asks it to, or when an actor fails for good. It installs no signal handlers and
//! does not exit the process: the daemon does both.

use crate::actor::Actor;
use crate::actor_task::ActorSource;
use crate::child_spec::ChildSpec;
use crate::failure::ActorSystemError;
use crate::mailbox::Address;
use crate::shutdown::deadline_after;
use crate::spawn::spawn;
use crate::supervisor::Supervisor;
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;

/// The root of the actors. Dropping it drops them all at once.
#[derive(Debug)]
pub struct ActorSystem {
    root: Supervisor,
    fatal_errors: mpsc::UnboundedReceiver<ActorSystemError>,
}

impl ActorSystem {
    /// A system without actors.
    #[expect(clippy::new_without_default, reason = "a root is created on purpose, never as a default")]
    pub fn new() -> Self {
        let (sender, fatal_errors) = mpsc::unbounded_channel();
        Self { root: Supervisor::new("", sender), fatal_errors }
    }

    /// Spawns an actor that `factory` builds now and again after each failure: up to five restarts a
    /// minute. One failure more ends the system.
    ///
    /// The factory only builds: what may fail belongs in [`Actor::started`].
    pub fn spawn<A: Actor>(
        &self,
        spec: ChildSpec,
        factory: impl FnMut() -> A + Send + 'static,
    ) -> Address<A::Message> {
        spawn(&self.root, spec, ActorSource::Factory(Box::new(factory)))
    }

    /// Spawns an actor that is not restarted. Its failure is logged and ends only this actor.
    pub fn spawn_once<A: Actor>(&self, spec: ChildSpec, actor: A) -> Address<A::Message> {
        spawn(&self.root, spec, ActorSource::Once(Some(actor)))
    }

    /// Spawns an actor that the daemon cannot do without: its end, by a failure or by itself, ends the
    /// system.
    pub fn spawn_essential<A: Actor>(&self, spec: ChildSpec, actor: A) -> Address<A::Message> {
        spawn(&self.root, spec, ActorSource::Essential(Some(actor)))
    }

    /// Runs until the signal or the first fatal failure, then stops all actors within `grace`.
    ///
    /// # Errors
    /// The fatal failure: an essential actor ended, or an actor failed more often than it may.
    /// [`ActorSystemError::Overdue`] as from [`shutdown`](Self::shutdown).
    pub async fn run_until(
        mut self,
        signal: impl Future<Output = ()>,
        grace: Duration,
    ) -> Result<(), ActorSystemError> {
        let fatal = tokio::select! {
            biased;
            Some(error) = self.fatal_errors.recv() => Some(error),
            () = signal => None,
        };
        let stopped = self.shutdown(grace).await;
        fatal.map_or(stopped, Err)
    }

    /// Stops the actors in reverse order, each within its own grace, and all together within this one.
    ///
    /// # Errors
    /// A fatal failure that came before; [`ActorSystemError::Overdue`] when some actors did not stop in
    /// time and were dropped.
    pub async fn shutdown(mut self, grace: Duration) -> Result<(), ActorSystemError> {
        let actors = self.root.stop(deadline_after(grace)).await;
        if let Ok(error) = self.fatal_errors.try_recv() {
            return Err(error);
        }
        if actors.is_empty() { Ok(()) } else { Err(ActorSystemError::Overdue { actors }) }
    }
}
