//! Why a rank cannot run as its user.

use std::path::PathBuf;

use cohabit_host::files::FileError;
use cohabit_types::StartFailure;

/// Why a rank cannot run as the account of its user, as a text for that user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error(
        "its account '{0}' is root on the worker, and only jobs of admins may run as root: ask an admin for a token \
         with another --account"
    )]
    NotAdmin(String),
    #[error(
        "its account '{0}' is root, and this worker runs no jobs as root (--no-root-jobs): use a token with another \
         --account"
    )]
    NoRootJobs(String),
    #[error(
        "its account '{name}' (user id {uid}) belongs to the system, and this worker runs jobs only as accounts from \
         user id {min_uid} on (--min-uid): use a token with another --account"
    )]
    OfSystem { name: String, uid: u32, min_uid: u32 },
    #[error(
        "this worker is not root and serves only the account '{own}', and the job runs as '{name}': start the worker \
         as root or with --allow-shared-account"
    )]
    Other { own: String, name: String },
    #[error("the worker cannot look up the account '{0}': {1}")]
    LookUp(String, nix::Error),
    #[error("user '{0}' has no account on the worker, and no user id is left for it: create an account")]
    NoneLeft(String),
    #[error(
        "the directory '{}' holds checkpoints of another user (user id {owner}): move it away", folder.display()
    )]
    CheckpointsOfAnother { folder: PathBuf, owner: u32 },
    #[error(transparent)]
    File(#[from] FileError),
}

impl AccountError {
    /// What the head hears of it. Another worker may well run the job where it is not the job's fault.
    pub(crate) fn failure(&self) -> StartFailure {
        match self {
            AccountError::Other { .. } => StartFailure::NodeProblem(self.to_string()),
            AccountError::File(error) if error.is_of_machine() => StartFailure::NodeProblem(self.to_string()),
            AccountError::File(_) => StartFailure::Other(self.to_string()),
            AccountError::NotAdmin(_)
            | AccountError::NoRootJobs(_)
            | AccountError::OfSystem { .. }
            | AccountError::LookUp(..)
            | AccountError::NoneLeft(_)
            | AccountError::CheckpointsOfAnother { .. } => StartFailure::Account(self.to_string()),
        }
    }
}
