//! The memory watchdog of a rank whose memory nothing else limits.
//!
//! A single sample may catch a rank while it moves memory; two samples in a row over the limit do not.

use cohabit_types::Bytes;

/// The number of successive samples over the limit that stops a rank.
const READINGS_OVER_LIMIT: u32 = 2;

/// Watches one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryWatchdog {
    limit: Bytes,
    samples_over: u32,
}

/// The result of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryReading {
    /// Within the limit, or over it only for a moment.
    Within,
    /// Over the limit.
    Over,
}

impl MemoryWatchdog {
    pub(crate) const fn new(limit: Bytes) -> MemoryWatchdog {
        MemoryWatchdog { limit, samples_over: 0 }
    }

    /// Records the memory that the rank holds now.
    pub(crate) fn record(&mut self, held: Bytes) -> MemoryReading {
        self.samples_over = if held > self.limit { self.samples_over.saturating_add(1) } else { 0 };
        if self.samples_over < READINGS_OVER_LIMIT { MemoryReading::Within } else { MemoryReading::Over }
    }
}
