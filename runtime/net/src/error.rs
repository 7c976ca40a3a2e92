//! Errors of links. Each says what to do, and none carries a secret.
//!
//! A program asks [`LinkError::kind`] whether another try can help.

use std::io;

use tarpc::client::RpcError;

use cohabit_wire::hello::older_side;
use cohabit_wire::{BUILD, Fingerprint, HelloRefusalCode, PROTOCOL_VERSION};

use crate::endpoint::DEFAULT_PORT;

/// Why there is no link, or no link any more.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The text is no address.
    #[error("'{address}' is not the address of a head: write HOST:PORT, such as gpu-head:{DEFAULT_PORT}")]
    BadAddress {
        /// What was given.
        address: String,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address} ({source}): stop the program that uses it, or choose another address with --listen"
    )]
    Bind {
        /// Where.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Nothing answers there.
    #[error(
        "cannot reach a head at {address} ({source}): check the address, the firewall, and that the head is running"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Something answers, but it is not a Cohabit head.
    #[error("the program that answers at {address} is not a Cohabit head ({reason}): check host and port")]
    NotCohabit {
        /// Where.
        address: String,
        /// How it showed.
        reason: String,
    },
    /// A head, or something that looks like one, of another cluster than the token's.
    #[error(
        "the head at {address} does not belong to the cluster of this token ({expected}): \
         check the address, or get a token of that cluster; if neither has changed, the connection may be \
         intercepted"
    )]
    WrongCluster {
        /// Where.
        address: String,
        /// What the token says.
        expected: Fingerprint,
    },
    /// The head's certificate is of the right cluster, but not good.
    #[error(
        "the certificate of the head at {address} is not valid ({reason}): check the clocks of both machines"
    )]
    BadCertificate {
        /// Where.
        address: String,
        /// Why.
        reason: String,
    },
    /// Both sides speak, but other versions.
    #[error(
        "the head at {address} runs cohabit {build} and speaks protocol {theirs}, \
         but this is cohabit {ours_build} and speaks protocol {ours}: upgrade {older}",
        ours = PROTOCOL_VERSION,
        ours_build = BUILD,
        older = older_side(*theirs, "the head first", "this one")
    )]
    OtherVersion {
        /// Where.
        address: String,
        /// The head's protocol.
        theirs: u32,
        /// The head's build.
        build: String,
    },
    /// The head understood, and refused.
    #[error("the head at {address} refused: {message}")]
    Refused {
        /// Where.
        address: String,
        /// Why, for programs.
        code: HelloRefusalCode,
        /// Why and what to do, for people.
        message: String,
    },
    /// The connection ended, or went wrong, before or after the hello.
    #[error("the link to {address} broke ({reason}): try again")]
    Broken {
        /// Where.
        address: String,
        /// How.
        reason: String,
    },
}

/// What kind of trouble it is, for exit codes and for those who reconnect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkErrorKind {
    /// The head cannot be reached now: trying again may help. Exit code 69.
    Unreachable,
    /// The token does not allow it: trying again does not help. Exit code 77.
    NotAllowed,
    /// Something is set up wrongly: trying again does not help. Exit code 78.
    BadConfiguration,
}

impl LinkError {
    /// What kind of trouble it is.
    #[must_use]
    pub fn kind(&self) -> LinkErrorKind {
        match self {
            LinkError::Unreachable { .. } | LinkError::Broken { .. } => LinkErrorKind::Unreachable,
            LinkError::Refused { code, .. } => kind_of_refusal(*code),
            LinkError::BadAddress { .. }
            | LinkError::Bind { .. }
            | LinkError::NotCohabit { .. }
            | LinkError::WrongCluster { .. }
            | LinkError::BadCertificate { .. }
            | LinkError::OtherVersion { .. } => LinkErrorKind::BadConfiguration,
        }
    }

    /// A call over an existing link failed.
    #[must_use]
    pub fn of_call(address: &str, error: &RpcError) -> LinkError {
        LinkError::Broken { address: address.to_owned(), reason: error.to_string() }
    }
}

const fn kind_of_refusal(code: HelloRefusalCode) -> LinkErrorKind {
    match code {
        HelloRefusalCode::UnknownToken | HelloRefusalCode::ExpiredToken | HelloRefusalCode::WrongRole => {
            LinkErrorKind::NotAllowed
        }
        HelloRefusalCode::Busy | HelloRefusalCode::Recovering => LinkErrorKind::Unreachable,
        HelloRefusalCode::Undecodable => LinkErrorKind::BadConfiguration,
    }
}

impl LinkErrorKind {
    /// The exit code that scripts see.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            LinkErrorKind::Unreachable => 69,
            LinkErrorKind::NotAllowed => 77,
            LinkErrorKind::BadConfiguration => 78,
        }
    }
}
