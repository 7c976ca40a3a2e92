//! What the spawner states about a child: its name, its mailbox's size, how it may fail, its time to stop.
//!
//! A spec holds no behaviour and knows nothing about the actor's type.

use crate::RestartPolicy;
use std::time::Duration;

/// The terms of a child.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    pub(crate) name: String,
    pub(crate) capacity: usize,
    pub(crate) restart: RestartPolicy,
    pub(crate) grace: Duration,
}

impl ChildSpec {
    /// A child called `name`, whose mailbox holds `capacity` messages (at least one).
    ///
    /// It may fail by [`RestartPolicy::default`], and has five seconds to stop.
    pub fn new(name: impl Into<String>, capacity: usize) -> Self {
        Self { name: name.into(), capacity, restart: RestartPolicy::default(), grace: Duration::from_secs(5) }
    }

    /// How often, and how fast, it is restarted after failures.
    pub fn restart(self, restart: RestartPolicy) -> Self {
        Self { restart, ..self }
    }

    /// How long it may take to stop, its children included, before its supervisor drops it.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }
}
