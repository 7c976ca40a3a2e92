//! Workers that wanted to act as a node that belongs to another one.

use serde::{Deserialize, Serialize};

use crate::{NodeId, Time};

/// The last time that another worker than its own wanted to act as a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedWorker {
    /// Which node.
    pub node: NodeId,
    /// The IP address from which it connected.
    pub address: String,
    /// When.
    pub at: Time,
    /// How often since the head started.
    pub times: u64,
}
