//! What a store may use.

use std::path::PathBuf;
use std::time::Duration;

/// How long a request waits for room.
pub(crate) const ROOM_PATIENCE: Duration = Duration::from_secs(30);

/// What a store may use.
#[derive(Debug, Clone)]
pub(crate) struct StoreSettings {
    /// The memory for all objects, in bytes.
    pub(crate) budget: u64,
    /// Where objects are spilled to. Nothing there has a name.
    pub(crate) spill_directory: PathBuf,
    /// How long a request waits for room: [`ROOM_PATIENCE`].
    pub(crate) patience: Duration,
}
