//! The standard input of a job, and its terminal.

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
    /// The keys of a terminal, which has this size at first. The rank prints to it, too. Any number of
    /// clients type there, one after the other or side by side.
    Terminal(TerminalSize),
}

impl JobInput {
    /// The size at first of the terminal that the rank has, if it has one.
    #[must_use]
    pub const fn terminal(self) -> Option<TerminalSize> {
        match self {
            JobInput::Terminal(size) => Some(size),
            JobInput::Empty | JobInput::Sent => None,
        }
    }
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

impl Default for TerminalSize {
    fn default() -> TerminalSize {
        TerminalSize { rows: 24, columns: 80 }
    }
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
    /// Which further process of the rank, see [`ExecId`](crate::ExecId); none for its first.
    pub process: Option<u64>,
    /// How many bytes of the input come before this piece; on a terminal, of the input of this typist.
    pub offset: u64,
    /// At most [`INPUT_PIECE`].
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Whether the input ends with this piece. That of a terminal does not.
    pub is_last: bool,
    /// Who types, if the rank has a terminal.
    pub typist: Option<Typist>,
}

/// A client that types on the terminal of a rank. Others may do so, too: each counts its own bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typist {
    /// A number that the client has drawn at random.
    pub number: u64,
    /// The size of the client's window, which the terminal takes.
    pub size: TerminalSize,
}
