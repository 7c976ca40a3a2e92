//! The files of stored weights: read whole, and replaced whole.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What could not be done with a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// To create a directory.
    Create,
    /// To read a file.
    Read,
    /// To write a file.
    Write,
}

impl fmt::Display for FileAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileAction::Create => "create",
            FileAction::Read => "read",
            FileAction::Write => "write",
        })
    }
}

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct StoredFileError {
    /// The operation.
    pub action: FileAction,
    /// The file or directory.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl StoredFileError {
    fn of(action: FileAction, path: &Path) -> impl FnOnce(io::Error) -> StoredFileError {
        move |source| StoredFileError { action, path: path.to_owned(), source }
    }
}

/// Creates a directory and its parents, if needed.
pub(crate) fn create_directory(path: &Path) -> Result<(), StoredFileError> {
    fs::create_dir_all(path).map_err(StoredFileError::of(FileAction::Create, path))
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, StoredFileError> {
    fs::read(path).map_err(StoredFileError::of(FileAction::Read, path))
}

/// Writes a temporary file and renames it, so that a directory in use never holds half a file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoredFileError> {
    let unfinished = path.with_added_extension("unfinished");
    fs::write(&unfinished, bytes)
        .and_then(|()| fs::rename(&unfinished, path))
        .map_err(StoredFileError::of(FileAction::Write, path))
}
