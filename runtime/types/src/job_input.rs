//! The standard input of a job.

use serde::{Deserialize, Serialize};

use crate::RankId;

/// What the first rank of a job reads from its standard input. All other ranks read nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobInput {
    /// Nothing.
    #[default]
    Empty,
    /// What a client sends while the rank runs; it waits for more until the client says that this is all.
    Sent,
}

/// The most bytes of an input: its worker keeps all of it until the rank ends.
pub const MOST_INPUT: u64 = 1 << 30;

/// The most bytes of a piece.
pub const INPUT_PIECE: usize = 256 << 10;

/// A piece of the input of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputPiece {
    /// Which rank.
    pub rank: RankId,
    /// How many bytes of the input come before this piece.
    pub offset: u64,
    /// At most [`INPUT_PIECE`].
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Whether the input ends with this piece.
    pub is_last: bool,
}
