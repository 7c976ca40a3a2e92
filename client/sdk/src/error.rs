//! Errors of the SDK, by what the program can do about them.
//!
//! Refusals of the head are apart from errors of the link. An error says what was wrong, where, and what to
//! do; it never holds the secret of a token.

use cohabit_net::{LinkError, LinkErrorKind, RpcError};
use cohabit_types::{Refusal, RefusalCode};

use crate::code::CodeError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing answers at the head's address, or nothing has answered for longer than the retry timeout.
    #[error(transparent)]
    Unreachable(LinkError),
    /// The token is unknown, expired or revoked, or its role does not allow this.
    #[error("{0}")]
    NotAllowed(String),
    /// The head refused.
    #[error(transparent)]
    Refused(Refusal),
    /// No link is possible: another protocol version, another cluster, no address.
    #[error(transparent)]
    Link(LinkError),
    /// The link broke under a request that must not be made twice; it may have been carried out or not.
    #[error("the link to the head broke during '{what}': check whether it took effect before you repeat it")]
    Unconfirmed {
        /// The request.
        what: &'static str,
        /// How the link broke.
        #[source]
        why: LinkError,
    },
    /// The description of the job is not valid.
    #[error("the job cannot be submitted: {0}")]
    InvalidJob(String),
    /// No snapshot of the code can be taken.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// There is no usable address or token.
    #[error("{0}")]
    Configuration(String),
    /// The head said something that no head of this version says, or a message fits no frame.
    #[error("protocol error between the head and this program: {0}")]
    Protocol(String),
}

impl Error {
    /// Whether the same call may succeed a little later, on a new link or with a restarted head.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Error::Unreachable(_) => true,
            Error::Refused(refusal) => refusal.code == RefusalCode::Unavailable,
            Error::NotAllowed(_)
            | Error::Link(_)
            | Error::Unconfirmed { .. }
            | Error::InvalidJob(_)
            | Error::Code(_)
            | Error::Configuration(_)
            | Error::Protocol(_) => false,
        }
    }

    /// The error of a broken or expired call to this head.
    pub(crate) fn of_call(head: &str, error: &RpcError) -> Error {
        match error {
            RpcError::Shutdown | RpcError::Channel(_) | RpcError::DeadlineExceeded => {
                Error::Unreachable(LinkError::of_call(head, error))
            }
            RpcError::Send(why) => Error::Protocol(format!("the request could not be sent: {why}")),
            RpcError::Server(why) => Error::Protocol(format!("the head failed to handle the request: {why}")),
        }
    }
}

impl From<LinkError> for Error {
    fn from(error: LinkError) -> Error {
        match error.kind() {
            LinkErrorKind::Unreachable => Error::Unreachable(error),
            LinkErrorKind::NotAllowed => Error::NotAllowed(error.to_string()),
            LinkErrorKind::BadConfiguration => Error::Link(error),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal.code {
            RefusalCode::NotAllowed => Error::NotAllowed(refusal.message),
            RefusalCode::Invalid
            | RefusalCode::Unsatisfiable
            | RefusalCode::NotFound
            | RefusalCode::Ambiguous
            | RefusalCode::WrongState
            | RefusalCode::Unavailable
            | RefusalCode::Internal
            | RefusalCode::StorageFailed
            | RefusalCode::Limit => Error::Refused(refusal),
        }
    }
}
