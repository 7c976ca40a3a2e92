//! The supervision tree: who restarts whom, who stops before whom.
//!
//! Every actor is the supervisor of the children that it spawns, and a [`ActorSystem`](crate::System) is the root.
//!
//! ```text
//!            System (root)               `writer` fails: an error or a panic
//!           /      |      \
//!     registrar  driver  listener        1. its own children stop
//!               /      \                 2. after the back-off it is built again; its mailbox, its address
//!           writer    planner               and its siblings never notice
//!                                        3. past its limit it is given up: driver fails (planner stops),
//!                                           and is restarted within driver's own limit, with new children
//!                                        4. past driver's limit, `ActorSystem::run_until` ends with the error
//!
//!     shutdown: listener, driver (planner, writer, then driver itself), registrar
//! ```
//!
//! - **One for one.** Limits and back-off belong to the child ([`RestartPolicy`](crate::Restart)); siblings go on.
//! - **Stopping is in reverse order of spawning**, children before their parent, each within its grace. A
//!   parent handles messages until its children are gone, then what is left in its mailbox, then `stopped`. A
//!   child that is too late is dropped at its next await.
//! - **To group actors** under one limit, write an actor whose `started` spawns them.
//!
//! A supervisor never restarts a child that stopped in order, and never one that it was given by
//! `spawn_once`.

use crate::failure::Escalation;
use crate::keeper::{ActorSource, ActorTask};
use crate::restart::RestartHistory;
use crate::shutdown::{ShutdownSender, deadline_after, switch};
use crate::{Actor, Address, ChildSpec, Mailbox, Registry, Shutdown, mailbox};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

/// Spawns children, and stops them in order. Dropping it drops them all at once.
#[derive(Debug)]
pub struct Supervisor {
    path: String,
    registry: Registry,
    escalations: mpsc::UnboundedSender<Escalation>,
    children: Arc<Children>,
}

impl Supervisor {
    pub(crate) fn new(path: &str, registry: Registry) -> (Self, mpsc::UnboundedReceiver<Escalation>) {
        let (escalations, received) = mpsc::unbounded_channel();
        let children = Arc::new(Children::default());
        (Self { path: path.to_string(), registry, escalations, children }, received)
    }

    /// Spawns an actor that `factory` builds, now and after each failure.
    ///
    /// The factory only builds: what may fail belongs into [`Actor::started`]. Under a supervisor that is
    /// stopping nothing starts, and the address is closed.
    pub fn spawn<A: Actor>(
        &self,
        spec: ChildSpec,
        factory: impl FnMut() -> A + Send + 'static,
    ) -> Address<A::Message> {
        self.launch(spec, ActorSource::Factory(Box::new(factory)))
    }

    /// Spawns an actor that holds what cannot be built again, such as a connection. Its failure is logged,
    /// ends it, and is nobody else's: who cares waits for [`Address::closed`].
    pub fn spawn_once<A: Actor>(&self, spec: ChildSpec, actor: A) -> Address<A::Message> {
        self.launch(spec, ActorSource::Once(Some(actor)))
    }

    /// The path of the actor whose children these are; empty at the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The names of the system.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    fn launch<A: Actor>(&self, spec: ChildSpec, origin: ActorSource<A>) -> Address<A::Message> {
        let (address, mailbox) = mailbox(spec.capacity);
        let (switch, shutdown) = switch();
        let (path, grace) = (self.path_of(&spec.name), spec.grace);
        let keeper = self.keeper(path.clone(), spec, origin, address.clone(), mailbox, shutdown);
        self.children.add(|| {
            let span = tracing::info_span!(parent: None, "actor", path);
            Child { path, grace, switch, task: tokio::spawn(keeper.run().instrument(span)) }
        });
        address
    }

    fn keeper<A: Actor>(
        &self,
        path: String,
        spec: ChildSpec,
        origin: ActorSource<A>,
        address: Address<A::Message>,
        mailbox: Mailbox<A::Message>,
        shutdown: Shutdown,
    ) -> ActorTask<A> {
        let (parent, registry) = (self.escalations.clone(), self.registry.clone());
        let (restarts, grace) = (RestartHistory::new(spec.restart), spec.grace);
        ActorTask { path, origin, address, mailbox, restarts, grace, shutdown, parent, registry }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}/{name}", self.path) }
    }

    /// Stops the children, the last one first; gives the paths of those that were not done by the deadline.
    pub(crate) fn stop(&self, deadline: Instant) -> impl Future<Output = Vec<String>> + Send + use<> {
        let children = Arc::clone(&self.children);
        async move { children.stop(deadline).await }
    }
}

#[derive(Debug, Default)]
struct Children {
    phase: Mutex<Phase>,
    /// Held while children stop, so that a second stop waits for the first.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Phase {
    /// The children in the order in which they were spawned.
    Open(Vec<Child>),
    Stopping,
}

impl Default for Phase {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Children {
    fn add(&self, child: impl FnOnce() -> Child) {
        if let Phase::Open(children) = &mut *self.phase() {
            children.retain(|child| !child.task.is_finished());
            children.push(child());
        }
    }

    async fn stop(&self, deadline: Instant) -> Vec<String> {
        let _turn = self.turn.lock().await;
        let phase = std::mem::replace(&mut *self.phase(), Phase::Stopping);
        let Phase::Open(children) = phase else { return Vec::new() };
        let mut overdue = Vec::new();
        for child in children.into_iter().rev() {
            overdue.extend(child.stop(deadline).await);
        }
        overdue
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Child {
    path: String,
    grace: Duration,
    switch: ShutdownSender,
    task: JoinHandle<()>,
}

impl Child {
    /// Gives the path if the child was not done in time.
    async fn stop(mut self, deadline: Instant) -> Option<String> {
        let deadline = deadline.min(deadline_after(self.grace));
        self.switch.request(deadline);
        timeout_at(deadline, &mut self.task).await.err()?;
        tracing::warn!(actor = self.path, "did not stop in time, and is dropped");
        Some(std::mem::take(&mut self.path))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.task.abort();
    }
}
