//! The first frames of protocol 4, as its golden bytes hold them: its workers have no credential, and its
//! heads know no recovery mode. Frozen: not a field may change. `crate::hello` converts it.

use cohabit_types::WorkerKey;
use serde::{Deserialize, Serialize};

use super::node::Inventory;
use super::principal::Principal;
use crate::{Fingerprint, Secret};

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

/// The body of the first frame of a head.
#[derive(Debug, Serialize, Deserialize)]
pub enum HelloAnswer {
    /// The connection is accepted.
    Accepted(HelloAccepted),
    /// The connection is refused, and closed.
    Refused {
        /// Why, for programs.
        code: HelloRefusalCode,
        /// Why, for people.
        message: String,
    },
}

/// What a head tells a peer that it accepts.
#[derive(Debug, Serialize, Deserialize)]
pub struct HelloAccepted {
    /// The cluster that it belongs to.
    pub cluster: Fingerprint,
    /// The user and role of the peer's token.
    pub by: Principal,
    /// The head's build.
    pub build: String,
}

/// Why a head refuses a connection, for programs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum HelloRefusalCode {
    /// The token does not exist, or was revoked.
    UnknownToken,
    /// The token has expired.
    ExpiredToken,
    /// The token does not allow this purpose.
    WrongRole,
    /// The head has too many connections.
    Busy,
    /// The hello cannot be decoded.
    Undecodable,
}
