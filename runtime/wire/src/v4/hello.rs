//! The first frame of a peer of protocol 4, as its golden bytes hold it: its workers have no credential.
//! Frozen: not a field may change. `crate::hello` converts it.

use cohabit_types::WorkerKey;
use serde::{Deserialize, Serialize};

use super::node::Inventory;
use crate::Secret;

/// The body of the first frame of a client or worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The secret of the token.
    pub secret: Secret,
    /// What the connection is for.
    pub purpose: ConnectionPurpose,
}

/// What a connection is for.
#[derive(Debug, Serialize, Deserialize)]
pub enum ConnectionPurpose {
    /// A client's calls.
    Client,
    /// A worker's reports, and the orders for it.
    Worker(Box<WorkerHello>),
}

/// What a worker says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerHello {
    /// The node, and which of its links this is.
    pub key: WorkerKey,
    /// What the node has, and each rank that it holds.
    pub inventory: Inventory,
}
