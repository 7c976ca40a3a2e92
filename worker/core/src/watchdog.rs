//! The watchdog over the memory of a rank that nothing else limits.
//!
//! One look may catch a rank while it moves memory about; two in a row do not.

use cohabit_types::Bytes;

/// So many looks in a row over the limit are too many.
const READINGS_OVER_LIMIT: u32 = 2;

/// Watches one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryWatchdog {
    limit: Bytes,
    looks_over: u32,
}

/// What a look comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryReading {
    /// It keeps to its limit, or may have left it for a moment.
    Within,
    /// It holds more than it may.
    Over,
}

impl MemoryWatchdog {
    pub(crate) const fn new(limit: Bytes) -> MemoryWatchdog {
        MemoryWatchdog { limit, looks_over: 0 }
    }

    /// What the rank holds now.
    pub(crate) fn look(&mut self, held: Bytes) -> MemoryReading {
        self.looks_over = if held > self.limit { self.looks_over.saturating_add(1) } else { 0 };
        if self.looks_over < READINGS_OVER_LIMIT { MemoryReading::Within } else { MemoryReading::Over }
    }
}
