//! The directory for a rank's checkpoints: private to its user, and the same for all attempts of its job on
//! this host.
//!
//! A directory that the job names is created as its user, so that it cannot lie where that user may not
//! write.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cohabit_host::account::Account;
use cohabit_host::files::{FileContext, create_directory};
use cohabit_worker_core::RankStart;

use crate::isolation::AccountError;
use crate::state_directory::StateDirectory;

const CREATE_ACTION: &str = "create the directory for checkpoints";

/// Creates the directory unless it exists.
pub(crate) fn prepare(
    state: &StateDirectory,
    rank: &RankStart,
    account: Option<&Account>,
) -> Result<PathBuf, AccountError> {
    match &rank.spec.checkpoint {
        Some(place) => {
            let folder = Path::new(&rank.spec.workdir).join(place);
            let make = || DirBuilder::new().recursive(true).mode(0o755).create(&folder);
            account.map_or_else(make, |account| account.run_as(make)?).at(CREATE_ACTION, &folder)?;
            Ok(folder)
        }
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
