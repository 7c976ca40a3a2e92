//! The checkpoints that this worker keeps: a directory for each job, private to its user, and the same for
//! all attempts of the job on this node. Where an attempt starts that the job's last one did not run on, they
//! are carried over first, through the head.
//!
//! ```text
//! checkpoints/12                   of job 12, as the first node of its attempts
//! checkpoints/12.5-node1           of member 5 of an array, as their second node
//! checkpoints/12-earlier           what was here before later ones were carried over that lack it
//! checkpoints/12-incomplete        those of job 12 lack what an earlier attempt had saved
//! checkpoints/.carried-12-2        on their way, for attempt 2
//! ```
//!
//! A directory that the job names is created by its executor: the daemon touches no path that a user chose,
//! because such a path may take for ever to follow.

mod archives;
mod carrier;
mod entry;
mod tar;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use cohabit_host::account::Account;
use cohabit_host::files::{FileContext, create_directory};
use cohabit_worker_core::RankStart;

pub(crate) use self::archives::CheckpointArchives;
pub(crate) use self::carrier::Carrier;
pub(crate) use self::entry::CheckpointEntry;
use crate::isolation::AccountError;
use crate::state_directory::StateDirectory;

/// Only the account of the job enters it.
const PRIVATE: u32 = 0o700;

/// The directory. One in the state of this worker is created unless it exists. Blocks.
pub(crate) fn prepare(
    state: &StateDirectory,
    rank: &RankStart,
    account: Option<&Account>,
) -> Result<PathBuf, AccountError> {
    match rank.named_checkpoints() {
        Some(folder) => Ok(folder),
        None => {
            let entry = CheckpointEntry::latest(rank.rank.attempt.job, rank.node_rank);
            own(entry.path(&state.checkpoints()), account)
        }
    }
}

/// Refuses a directory that another user left under this name before the head was reset.
fn own(folder: PathBuf, account: Option<&Account>) -> Result<PathBuf, AccountError> {
    create_directory(&folder)?;
    let found = fs::symlink_metadata(&folder).at("inspect", &folder)?;
    if let Some(account) = account {
        let owner = found.uid();
        if owner != account.uid && owner != 0 {
            return Err(AccountError::CheckpointsOfAnother { folder, owner });
        }
        if (owner, found.gid()) != (account.uid, account.gid) {
            account.own(&folder)?;
        }
    }
    if found.mode() & 0o7777 != PRIVATE {
        fs::set_permissions(&folder, Permissions::from_mode(PRIVATE)).at("make private", &folder)?;
    }
    Ok(folder)
}
