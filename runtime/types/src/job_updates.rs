//! Updates of all jobs: what a client that shows the whole cluster asks for again and again.

use serde::{Deserialize, Serialize};

use crate::JobRecord;

/// A place in the updates of one run of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateCursor {
    /// Which run: a restarted head counts anew.
    pub run: u64,
    /// The number of the last update that was seen.
    pub position: u64,
}

/// Jobs that have changed since a cursor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobUpdates {
    /// Whether updates before these are missing: then all jobs have to be listed after this answer.
    pub gap: bool,
    /// What changed, each job once, members of arrays and arrays as a whole among them. As in a list,
    /// attempts before the latest are left out; so are jobs that the head no longer has in memory.
    pub jobs: Vec<JobRecord>,
    /// Where the next answer begins.
    pub next: UpdateCursor,
    /// Whether there are updates after these already.
    pub more: bool,
}
