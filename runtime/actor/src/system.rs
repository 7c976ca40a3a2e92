//! The root of a tree of actors: one for each daemon.
//!
//! It ends in order, by the daemon's signal or because an actor of the top level was given up. It never
//! installs signal handlers and never exits the process: that is for the daemon.

use crate::failure::Escalation;
use crate::shutdown::deadline_after;
use crate::{Actor, Address, ChildSpec, Registry, Supervisor};
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;

/// The root of the actors. Dropping it drops them all at once.
#[derive(Debug)]
pub struct ActorSystem {
    root: Supervisor,
    escalations: mpsc::UnboundedReceiver<Escalation>,
}

impl ActorSystem {
    /// A system without actors.
    pub fn new() -> Self {
        let (root, escalations) = Supervisor::new("", Registry::default());
        Self { root, escalations }
    }

    /// Spawns an actor of the top level; see [`Supervisor::spawn`].
    pub fn spawn<A: Actor>(
        &self,
        spec: ChildSpec,
        factory: impl FnMut() -> A + Send + 'static,
    ) -> Address<A::Message> {
        self.root.spawn(spec, factory)
    }

    /// Spawns an actor that cannot be built again; see [`Supervisor::spawn_once`].
    pub fn spawn_once<A: Actor>(&self, spec: ChildSpec, actor: A) -> Address<A::Message> {
        self.root.spawn_once(spec, actor)
    }

    /// The supervisor of the top level.
    pub fn root(&self) -> &Supervisor {
        &self.root
    }

    /// The names of the system.
    pub fn registry(&self) -> &Registry {
        self.root.registry()
    }

    /// Runs until the signal, then shuts down within the grace.
    ///
    /// # Errors
    /// [`ActorSystemError::Escalation`] when an actor of the top level is given up, which ends the run as the
    /// signal does; [`ActorSystemError::Overdue`] as from [`shutdown`](Self::shutdown).
    pub async fn run_until(
        mut self,
        signal: impl Future<Output = ()>,
        grace: Duration,
    ) -> Result<(), ActorSystemError> {
        let escalated = tokio::select! {
            biased;
            Some(escalated) = self.escalations.recv() => Some(escalated),
            () = signal => None,
        };
        let stopped = self.shutdown(grace).await;
        escalated.map_or(stopped, |escalated| Err(escalated.into()))
    }

    /// Stops the actors in reverse order, each within its own grace, and all together within this one.
    ///
    /// # Errors
    /// [`ActorSystemError::Overdue`] when some were dropped because they did not stop in time;
    /// [`ActorSystemError::Escalation`] when one had been given up before.
    pub async fn shutdown(mut self, grace: Duration) -> Result<(), ActorSystemError> {
        let actors = self.root.stop(deadline_after(grace)).await;
        if let Ok(escalated) = self.escalations.try_recv() {
            return Err(escalated.into());
        }
        if actors.is_empty() { Ok(()) } else { Err(ActorSystemError::Overdue { actors }) }
    }
}

impl Default for ActorSystem {
    fn default() -> Self {
        Self::new()
    }
}

/// How a system ends badly.
#[derive(Debug, thiserror::Error)]
pub enum ActorSystemError {
    /// An actor of the top level failed too often.
    #[error("the daemon cannot go on")]
    Escalation(#[from] Escalation),
    /// Actors of the top level did not stop in time, and were dropped.
    #[error("dropped because they did not stop in time: {}", actors.join(", "))]
    Overdue {
        /// Their paths, the first dropped first.
        actors: Vec<String>,
    },
}
