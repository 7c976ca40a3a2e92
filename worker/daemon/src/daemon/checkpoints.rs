//! The folder for a rank's checkpoints: for its user alone, and seen again by the next attempts of its job
//! here.
//!
//! Where the job itself names a folder, it is made as the user, for only so it cannot lie where that user may
//! not write.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cohabit_worker_core::RankStart;

use super::state::StateDirectory;
use crate::files::{FileContext, create_directory};
use crate::isolation::{Account, AccountError};

const CREATE_ACTION: &str = "create the folder for checkpoints";

/// Makes the folder unless it is there.
pub(super) fn prepare(
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

/// What another user left in a place of this name, in an earlier life of the cluster, is not for this one.
fn own(folder: PathBuf, account: Option<&Account>) -> Result<PathBuf, AccountError> {
    create_directory(&folder)?;
    if let Some(account) = account {
        let owner = fs::symlink_metadata(&folder).at("look at", &folder)?.uid();
        if owner != account.uid && owner != 0 {
            return Err(AccountError::CheckpointsOfAnother { folder, owner });
        }
        account.own(&folder)?;
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).at("make private", &folder)?;
    Ok(folder)
}
