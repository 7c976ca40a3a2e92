//! What a head knows of the backups that it continues from.

use cohabit_types::Time;

/// The latest restore of a backup, and what follows from all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredBackup {
    /// When the backup was restored.
    pub at: Time,
    /// How many numbers of attempts are passed over in a job that is older than the restore; the sum over all
    /// restores.
    pub attempt_gap: u32,
}
