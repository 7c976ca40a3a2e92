//! The address of a head, and the token to show there.

use crate::Token;

/// The port that a head listens on by default.
pub const DEFAULT_PORT: u16 = 7070;

/// A head, and the right to connect to it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `HOST:PORT`.
    pub address: String,
    /// The token.
    pub token: Token,
}
