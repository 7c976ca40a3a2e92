//! The first frames of protocol 4, as its golden bytes hold them: its workers have no credential, and its
//! heads know no recovery mode. Frozen: not a field may change. `crate::hello` converts it.

use cohabit_types::WorkerKey;
use serde::{Deserialize, Serialize};

use super::node::Inventory;
use crate::Secret;
use crate::hello::{self, HelloAccepted};

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

impl From<&hello::HelloAnswer> for HelloAnswer {
    fn from(answer: &hello::HelloAnswer) -> HelloAnswer {
        match answer {
            hello::HelloAnswer::Accepted(accepted) => HelloAnswer::Accepted(accepted.clone()),
            hello::HelloAnswer::Refused { code, message } => {
                HelloAnswer::Refused { code: (*code).into(), message: message.clone() }
            }
        }
    }
}

impl From<HelloAnswer> for hello::HelloAnswer {
    fn from(answer: HelloAnswer) -> hello::HelloAnswer {
        match answer {
            HelloAnswer::Accepted(accepted) => hello::HelloAnswer::Accepted(accepted),
            HelloAnswer::Refused { code, message } => {
                hello::HelloAnswer::Refused { code: code.into(), message }
            }
        }
    }
}

impl From<hello::HelloRefusalCode> for HelloRefusalCode {
    fn from(code: hello::HelloRefusalCode) -> HelloRefusalCode {
        match code {
            hello::HelloRefusalCode::UnknownToken => HelloRefusalCode::UnknownToken,
            hello::HelloRefusalCode::ExpiredToken => HelloRefusalCode::ExpiredToken,
            hello::HelloRefusalCode::WrongRole => HelloRefusalCode::WrongRole,
            // Of all that the peer knows, this makes it try again.
            hello::HelloRefusalCode::Busy | hello::HelloRefusalCode::Recovering => HelloRefusalCode::Busy,
            hello::HelloRefusalCode::Undecodable => HelloRefusalCode::Undecodable,
        }
    }
}

impl From<HelloRefusalCode> for hello::HelloRefusalCode {
    fn from(code: HelloRefusalCode) -> hello::HelloRefusalCode {
        match code {
            HelloRefusalCode::UnknownToken => hello::HelloRefusalCode::UnknownToken,
            HelloRefusalCode::ExpiredToken => hello::HelloRefusalCode::ExpiredToken,
            HelloRefusalCode::WrongRole => hello::HelloRefusalCode::WrongRole,
            HelloRefusalCode::Busy => hello::HelloRefusalCode::Busy,
            HelloRefusalCode::Undecodable => hello::HelloRefusalCode::Undecodable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_in_recovery_mode_is_busy_for_a_peer_of_protocol_4() {
        let recovering = hello::HelloRefusalCode::Recovering;
        assert!(matches!(HelloRefusalCode::from(recovering), HelloRefusalCode::Busy));
    }
}
