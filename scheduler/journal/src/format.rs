//! The number of the newest format.

/// The format that this version writes. Every number from 1 to this one is read.
pub const FORMAT: u32 = 6;
