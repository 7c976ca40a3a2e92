//! What is too much.

/// The most profiles of a file or directory.
pub(super) const MOST_PROFILES: usize = 10_000;
