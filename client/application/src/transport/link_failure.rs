//! Why connections end.

use std::io;

use cohabit_application_core::SessionError;
use cohabit_wire::codec::CodecError;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkFailure {
    /// It broke, or the other end closed it.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// This end closed it.
    #[error("the connection was replaced or is no longer needed")]
    Closed,
    /// The other end sent what no process of this application sends: nothing that follows makes sense.
    #[error("a process of the application broke the protocol: {0}")]
    Protocol(String),
}

impl From<SessionError> for LinkFailure {
    fn from(error: SessionError) -> LinkFailure {
        LinkFailure::Protocol(error.to_string())
    }
}

impl From<CodecError> for LinkFailure {
    fn from(error: CodecError) -> LinkFailure {
        LinkFailure::Protocol(error.to_string())
    }
}
