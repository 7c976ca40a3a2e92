//! What a rank printed, on disk: framed records in segment files that are named by where they start.
//!
//! A position counts bytes as printed, so it stays valid when old segments are dropped. One executor writes;
//! any number of readers follow, during the run and long after it. Readers never hold the writer up.

mod frame;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use cohabit_types::Bytes;
use serde::{Deserialize, Serialize};

#[cfg(feature = "fuzzing")]
pub(crate) use frame::Header;
pub(crate) use reader::LogDirectory;
pub(crate) use writer::LogWriter;

/// How much of a rank's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// A segment that has reached this size is followed by the next one.
    pub segment: Bytes,
    /// All segments together; the oldest is dropped when there is more.
    pub cap: Bytes,
}

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits { segment: Bytes(8 << 20), cap: Bytes(64 << 20) }
    }
}
