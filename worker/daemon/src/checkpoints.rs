//! The directory for a rank's checkpoints: private to its user, and the same for all attempts of its job on
//! this host.
//!
//! A directory that the job names is created by its executor: the daemon touches no path that a user chose,
//! because such a path may take for ever to follow.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use cohabit_host::account::Account;
use cohabit_host::files::{FileContext, create_directory};
use cohabit_worker_core::RankStart;

use crate::isolation::AccountError;
use crate::state_directory::StateDirectory;

/// The directory. One in the state of this worker is created unless it exists. Blocks.
pub(crate) fn prepare(
    state: &StateDirectory,
    rank: &RankStart,
    account: Option<&Account>,
) -> Result<PathBuf, AccountError> {
    match rank.named_checkpoints() {
        Some(folder) => Ok(folder),
        None => own(state.checkpoints_of(rank.rank.attempt.job), account),
    }
}

/// Refuses a directory that another user left under this name before the head was reset.
fn own(folder: PathBuf, account: Option<&Account>) -> Result<PathBuf, AccountError> {
    create_directory(&folder)?;
    if let Some(account) = account {
        let owner = fs::symlink_metadata(&folder).at("inspect", &folder)?.uid();
        if owner != account.uid && owner != 0 {
            return Err(AccountError::CheckpointsOfAnother { folder, owner });
        }
        account.own(&folder)?;
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).at("make private", &folder)?;
    Ok(folder)
}
