//! The terms on which an actor is spawned: its name, the capacity of its mailbox, and the time that it has
//! to stop.

use crate::restart_policy::RestartPolicy;
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
    /// A child called `name`, whose mailbox holds `capacity` messages (at least one) and which has five
    /// seconds to stop. The name appears in logs and errors, after the names of its parents:
    /// `driver/monitor`.
    pub fn new(name: impl Into<String>, capacity: usize) -> Self {
        let grace = Duration::from_secs(5);
        Self { name: name.into(), capacity, restart: RestartPolicy::default(), grace }
    }

    /// Sets the time that it has to stop, its children included. Afterwards its supervisor drops it.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }
}
