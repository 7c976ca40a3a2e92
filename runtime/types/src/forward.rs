//! TCP connections to the ports that a running job listens on, carried in pieces.
//!
//! Each direction counts its own bytes, so that a piece that is asked for or sent again after a broken link
//! arrives once.

use serde::{Deserialize, Serialize};

use crate::{FollowMode, RankId};

/// The most bytes of a piece to the server.
pub const FORWARD_PIECE: usize = 256 << 10;

/// The most connections to the ports of a rank at once.
pub const MOST_FORWARDS: usize = 64;

/// A connection to a port of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForwardId {
    /// The rank on whose node the port is.
    pub rank: RankId,
    /// A number that the client has drawn at random.
    pub number: u64,
}

/// Opens a connection to a port on the loopback address of a rank's node, on which a process of its job
/// listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardRequest {
    /// Which. To open the same twice opens it once.
    pub id: ForwardId,
    /// The port; not 0.
    pub port: u16,
    /// Whether it is opened, or only whether it could be is asked.
    pub purpose: ForwardPurpose,
}

/// What a [`ForwardRequest`] is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForwardPurpose {
    /// To know whether a process of the job listens on the port.
    Check,
    /// To connect to it.
    Connect,
}

/// Asks for the bytes that the server sends from a position on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardRead {
    /// Which connection.
    pub id: ForwardId,
    /// How many bytes have arrived: they are not needed any more.
    pub from: u64,
    /// What to do where there are none yet.
    pub at_end: FollowMode,
}

/// Bytes that the server has sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardOutput {
    /// About a megabyte at most.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Whether it sends no more after them.
    pub is_last: bool,
}

/// Bytes to the server. It gets as many of them as it takes without a pause; the rest is sent again. A piece
/// without bytes that is not the last waits until the server takes more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardPiece {
    /// Which connection.
    pub id: ForwardId,
    /// How many bytes come before this piece.
    pub offset: u64,
    /// At most [`FORWARD_PIECE`].
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Whether no more come after them.
    pub is_last: bool,
}
