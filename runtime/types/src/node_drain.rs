//! Taking a node out of service.

use serde::{Deserialize, Serialize};

use crate::{Span, Time};

/// The request that a node gets no new jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRequest {
    /// Name or id of the node.
    pub node: String,
    /// Why, for people.
    pub reason: Option<String>,
    /// After this long the jobs that still run there are queued again; never without.
    pub within: Option<Span>,
}

impl DrainRequest {
    /// Drains this node without a reason or a deadline.
    #[must_use]
    pub fn new(node: impl Into<String>) -> DrainRequest {
        DrainRequest { node: node.into(), reason: None, within: None }
    }
}

/// Since when, by whom and why a node gets no new jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDrain {
    /// Who drained it.
    pub by: String,
    /// When.
    pub at: Time,
    /// Why, for people.
    pub reason: Option<String>,
    /// When the jobs that still run there are queued again.
    pub deadline: Option<Time>,
    /// The number of the reservation for maintenance that drained it, and that resumes it at its end.
    pub reservation: Option<u64>,
}
