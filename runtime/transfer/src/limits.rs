//! How much is transferred at once, at most.

/// The most files, directories and links of one transfer.
pub const MOST_ENTRIES: u64 = 100_000;

/// The most directories inside one another.
pub const DEEPEST: usize = 64;
