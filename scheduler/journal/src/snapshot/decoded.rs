//! What part 0 of a snapshot holds.

use cohabit_scheduler_core::{HeadSnapshot, SnapshotPart};

/// Part 0 of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct DecodedHead {
    /// The head without its jobs.
    pub head: HeadSnapshot,
    /// All its jobs, if the format stores them with it.
    pub jobs: Option<SnapshotPart>,
}
