//! What ranks print, on its way from a worker's files to a client.
//!
//! Logs never touch the head's core: clients pull them piece by piece, so a slow reader slows nobody. A
//! position is an offset into everything the rank ever printed; it stays valid when old pieces are dropped.

use serde::{Deserialize, Serialize};

use crate::{RankId, Time};

/// A request for a piece of a rank's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRequest {
    /// The rank.
    pub rank: RankId,
    /// Where to begin.
    pub from: LogPosition,
    /// What to do at the end of the output of a rank that still runs.
    pub at_end: FollowMode,
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogPosition {
    /// At the oldest output that is kept.
    Start,
    /// This many lines before the end.
    Tail(u64),
    /// Where an earlier piece ended.
    At(u64),
}

/// What to do at the end of the output of a rank that still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowMode {
    /// Answer with nothing.
    Return,
    /// Wait a while for more.
    Wait,
}

/// A piece of a rank's output.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogChunk {
    /// What was printed, in order; never more than about a megabyte.
    pub records: Vec<LogRecord>,
    /// Where the next piece begins.
    pub next: u64,
    /// Bytes between the position asked for and the first record that are no longer kept.
    pub dropped: u64,
    /// Whether the rank has ended and nothing follows.
    pub complete: bool,
}

/// Something printed at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    /// Where it was printed to.
    pub stream: LogStream,
    /// When the executor read it.
    pub at: Time,
    /// The bytes as printed: not always text, not always whole lines.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// Standard output or standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
