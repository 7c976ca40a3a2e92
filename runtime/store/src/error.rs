//! What can go wrong with stored files.

use std::io;
use std::path::{Path, PathBuf};

use cohabit_types::{Bytes, ContentHash};

use crate::manifest::ManifestError;

/// Why stored files could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The disk, or the system, refused.
    #[error("cannot {action} '{}': {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The bytes of a file do not have its hash.
    #[error("the content of {} changed on the way: send it again", .0.short())]
    WrongContent(ContentHash),
    /// A stored file is no longer what it was.
    #[error("the stored copy of {} is damaged", .0.short())]
    Damaged(ContentHash),
    /// A file that is needed is not stored.
    #[error("{} is not stored", .0.short())]
    Missing(ContentHash),
    /// There is no room for more.
    #[error("the stored files take {used} of at most {limit}, and {wanted} more have no room")]
    Full {
        /// Bytes of all stored files.
        used: Bytes,
        /// The most that they may take.
        limit: Bytes,
        /// Bytes of the files that were to be added.
        wanted: Bytes,
    },
    /// A piece is larger than allowed, or does not lie in its file.
    #[error("a piece of {} does not lie in the file: report this as a bug", .0.short())]
    OutOfBounds(ContentHash),
    /// A list of files is not valid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Adds the action and the path to an error of the system.
pub(crate) trait IoContext<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, ContentError>;
}

impl<T, E: Into<io::Error>> IoContext<T> for Result<T, E> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, ContentError> {
        self.map_err(|error| ContentError::Io { action, path: path.to_owned(), source: error.into() })
    }
}
