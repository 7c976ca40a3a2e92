//! The first frame of a peer of protocol 4, whose workers have no credential. Frozen: not a field may change.

use cohabit_types::{Inventory, WorkerKey};
use serde::{Deserialize, Serialize};

use crate::{Secret, hello};

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

impl From<&hello::Hello> for Hello {
    fn from(hello: &hello::Hello) -> Hello {
        let purpose = match &hello.purpose {
            hello::ConnectionPurpose::Client => ConnectionPurpose::Client,
            hello::ConnectionPurpose::Worker(worker) => {
                let hello::WorkerHello { key, inventory, .. } = (**worker).clone();
                ConnectionPurpose::Worker(Box::new(WorkerHello { key, inventory }))
            }
        };
        Hello { secret: hello.secret, purpose }
    }
}

impl From<ConnectionPurpose> for hello::ConnectionPurpose {
    fn from(purpose: ConnectionPurpose) -> hello::ConnectionPurpose {
        match purpose {
            ConnectionPurpose::Client => hello::ConnectionPurpose::Client,
            ConnectionPurpose::Worker(worker) => {
                let WorkerHello { key, inventory } = *worker;
                let worker = hello::WorkerHello { key, credential: None, inventory };
                hello::ConnectionPurpose::Worker(Box::new(worker))
            }
        }
    }
}
