//! The root of a tree of actors: one for each daemon.
//!
//! It ends in order, by the daemon's signal or because an actor of the top level was given up. It never
//! installs signal handlers and never exits the process: that is for the daemon.

use crate::failure::Escalated;
use crate::shutdown::after;
use crate::{Actor, Address, Registry, Spec, Supervisor};
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;

/// The root of the actors. Dropping it drops them all at once.
#[derive(Debug)]
pub struct System {
    root: Supervisor,
    escalations: mpsc::UnboundedReceiver<Escalated>,
}

impl System {
    /// A system without actors.
    pub fn new() -> Self {
        let (root, escalations) = Supervisor::new("", Registry::default());
        Self { root, escalations }
    }

    /// Spawns an actor of the top level; see [`Supervisor::spawn`].
    pub fn spawn<A: Actor>(
        &self,
        spec: Spec,
        factory: impl FnMut() -> A + Send + 'static,
    ) -> Address<A::Message> {
        self.root.spawn(spec, factory)
    }

    /// Spawns an actor that cannot be built again; see [`Supervisor::spawn_once`].
    pub fn spawn_once<A: Actor>(&self, spec: Spec, actor: A) -> Address<A::Message> {
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
    /// [`SystemError::Escalated`] when an actor of the top level is given up, which ends the run as the
    /// signal does; [`SystemError::Overdue`] as from [`shutdown`](Self::shutdown).
    pub async fn run_until(
        mut self,
        signal: impl Future<Output = ()>,
        grace: Duration,
    ) -> Result<(), SystemError> {
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
    /// [`SystemError::Overdue`] when some were dropped because they did not stop in time;
    /// [`SystemError::Escalated`] when one had been given up before.
    pub async fn shutdown(mut self, grace: Duration) -> Result<(), SystemError> {
        let actors = self.root.stop(after(grace)).await;
        if let Ok(escalated) = self.escalations.try_recv() {
            return Err(escalated.into());
        }
        if actors.is_empty() { Ok(()) } else { Err(SystemError::Overdue { actors }) }
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

/// How a system ends badly.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// An actor of the top level failed too often.
    #[error("the daemon cannot go on")]
    Escalated(#[from] Escalated),
    /// Actors of the top level did not stop in time, and were dropped.
    #[error("dropped because they did not stop in time: {}", actors.join(", "))]
    Overdue {
        /// Their paths, the first dropped first.
        actors: Vec<String>,
    },
}
