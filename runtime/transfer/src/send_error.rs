//! Why nothing more is sent.

use std::io;
use std::path::Path;

use cohabit_types::Bytes;

use crate::entry::TransferFailure;
use crate::limits::MOST_ENTRIES;
use crate::path::TransferPath;

/// Why nothing more is sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The receiver is told.
    #[error("{1}")]
    Failure(TransferFailure, String),
    /// There is no receiver any more.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl SendError {
    pub(crate) fn too_large(message: String) -> SendError {
        SendError::Failure(TransferFailure::TooLarge, message)
    }

    pub(crate) fn too_many() -> SendError {
        SendError::too_large(format!(
            "more than {MOST_ENTRIES} files and directories: pack them into one file in the job, and copy that"
        ))
    }

    pub(crate) fn over_limit(bytes: u64, limit: Bytes) -> SendError {
        SendError::too_large(format!(
            "at least {} are to be copied, and the limit is {limit}: raise it with --limit",
            Bytes(bytes)
        ))
    }

    /// A file below what was named.
    pub(crate) fn of_file(path: &TransferPath, error: &io::Error) -> SendError {
        SendError::Failure(kind_of(error), format!("'{path}' cannot be read: {error}"))
    }

    pub(crate) fn of_path(path: &Path, error: &io::Error) -> SendError {
        SendError::Failure(kind_of(error), format!("'{}' cannot be read: {error}", path.display()))
    }
}

/// Which kind of reason an error is.
pub(crate) fn kind_of(error: &io::Error) -> TransferFailure {
    let kind = error.kind();
    if matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
        TransferFailure::NotFound
    } else if kind == io::ErrorKind::PermissionDenied {
        TransferFailure::NotAllowed
    } else {
        TransferFailure::Failed
    }
}
