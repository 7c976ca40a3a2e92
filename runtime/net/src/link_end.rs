//! Why a link ended.

use std::io;

use crate::TokenEnd;

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkEnd {
    /// This side closed it, or dropped its client.
    #[error("it was closed here")]
    ClosedHere,
    /// The other side closed it, or is gone.
    #[error("the other side closed it")]
    ClosedByPeer,
    /// The other side's token was revoked.
    #[error("its token was revoked")]
    TokenRevoked,
    /// The other side's token expired.
    #[error("its token has expired")]
    TokenExpired,
    /// Something went wrong.
    #[error("it broke: {0}")]
    Broken(String),
}

impl LinkEnd {
    /// What an error of the connection means.
    pub(crate) fn of(error: &io::Error) -> LinkEnd {
        let gone = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        if gone.contains(&error.kind()) { LinkEnd::ClosedByPeer } else { LinkEnd::Broken(error.to_string()) }
    }
}

impl From<TokenEnd> for LinkEnd {
    fn from(end: TokenEnd) -> LinkEnd {
        match end {
            TokenEnd::Revoked => LinkEnd::TokenRevoked,
            TokenEnd::Expired => LinkEnd::TokenExpired,
        }
    }
}
