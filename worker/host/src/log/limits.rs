//! How much of a rank's output is kept.

use cohabit_types::Bytes;

/// How much of a rank's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// A segment of this size or more is followed by the next one.
    pub segment: Bytes,
    /// The most that all segments hold together; the oldest is dropped beyond that.
    pub cap: Bytes,
}

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits { segment: Bytes(8 << 20), cap: Bytes(64 << 20) }
    }
}
