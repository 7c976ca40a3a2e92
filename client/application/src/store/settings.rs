//! What a store may use, and whom it reaches.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use cohabit_application_core::FromStore;
use cohabit_types::ApplicationAccess;
use tokio::sync::mpsc::UnboundedSender;

use super::transfer::NodeConnector;

/// How long a request waits for room.
pub(super) const ROOM_PATIENCE: Duration = Duration::from_secs(30);

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

impl StoreSettings {
    /// With so much memory. Objects are spilled to where the checkpoints of the store's job would be, which
    /// is on a disk.
    pub(crate) fn of(access: &ApplicationAccess, budget: u64) -> StoreSettings {
        let checkpoints = std::env::var_os("COHABIT_CHECKPOINT_DIR").map(PathBuf::from);
        StoreSettings {
            budget,
            spill_directory: checkpoints.unwrap_or_else(|| access.directory.clone()),
            patience: ROOM_PATIENCE,
        }
    }
}

/// What a store reaches others by.
pub(crate) struct StoreOutlets {
    /// Takes what the coordinator is to know.
    pub(crate) told: UnboundedSender<FromStore>,
    /// Opens connections with the stores of other nodes.
    pub(crate) connector: NodeConnector,
}

impl fmt::Debug for StoreOutlets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreOutlets")
    }
}
