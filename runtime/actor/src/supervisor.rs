//! The children of one actor, or of the system: how they are kept and in which order they stop.
//!
//! ```text
//!            ActorSystem                `link` fails: an error or a panic
//!           /      |    \
//!     cleaner   driver   link           1. its own children stop
//!               /    \                  2. after a delay it is built again; its mailbox, its address and its
//!           mps 0    monitor               siblings are unaffected
//!                                       3. past its limit `ActorSystem::run_until` ends with the error
//!
//!     shutdown: link, driver (monitor, mps 0, then driver itself), cleaner
//! ```
//!
//! Children stop in the reverse order of spawning, before their parent, each within its grace. A parent
//! handles messages until its children are gone, then the rest of its mailbox, then runs `stopped`. A child
//! that is too late is dropped at its next await. This module knows nothing about actors; `spawn.rs` puts
//! them here.

use crate::failure::ActorSystemError;
use crate::shutdown::{ShutdownSender, deadline_after};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Tells the system of a failure that the daemon cannot survive.
pub(crate) type FatalErrors = mpsc::UnboundedSender<ActorSystemError>;

/// The children of one actor, or of the system. Dropping it drops them all at once.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// The path of the parent; empty for the system.
    path: String,
    pub(crate) fatal_errors: FatalErrors,
    children: Arc<Children>,
}

impl Supervisor {
    pub(crate) fn new(path: &str, fatal_errors: FatalErrors) -> Self {
        Self { path: path.to_string(), fatal_errors, children: Arc::default() }
    }

    /// The path of a child with this name.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}/{name}", self.path) }
    }

    /// Adds the child that `start` starts; a supervisor that is stopping starts nothing.
    pub(crate) fn add(&self, start: impl FnOnce() -> Child) {
        if let Phase::Open(children) = &mut *self.children.phase() {
            children.retain(|child| !child.task.is_finished());
            children.push(start());
        }
    }

    /// Stops the children, the last one first; returns the paths of those that missed the deadline.
    pub(crate) fn stop(&self, deadline: Instant) -> impl Future<Output = Vec<String>> + Send + use<> {
        let children = Arc::clone(&self.children);
        async move { children.stop(deadline).await }
    }
}

#[derive(Debug, Default)]
struct Children {
    phase: Mutex<Phase>,
    /// Held while children stop, so that a second stop waits for the first.
    stopping: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Phase {
    /// The children in the order of spawning.
    Open(Vec<Child>),
    Stopping,
}

impl Default for Phase {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Children {
    async fn stop(&self, deadline: Instant) -> Vec<String> {
        let _stopping = self.stopping.lock().await;
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

/// One child: its task, and how to stop it.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) path: String,
    pub(crate) grace: Duration,
    pub(crate) shutdown: ShutdownSender,
    pub(crate) task: JoinHandle<()>,
}

impl Child {
    /// Returns the path if the child was not done in time.
    async fn stop(mut self, deadline: Instant) -> Option<String> {
        let deadline = deadline.min(deadline_after(self.grace));
        self.shutdown.request(deadline);
        timeout_at(deadline, &mut self.task).await.err()?;
        tracing::warn!(actor = self.path, "the actor did not stop in time and is dropped");
        Some(std::mem::take(&mut self.path))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.task.abort();
    }
}
