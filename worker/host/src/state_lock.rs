//! The lock on a worker's state directory: one daemon, or one profiler in its place, uses it at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::files::{FileContext, FileError};

/// The exclusive right to use a state directory, released when dropped. Executors do not inherit it.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

/// Why the state directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another process uses the state directory '{}'", .0.display())]
    InUse(PathBuf),
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Locks the state directory, which must exist.
///
/// # Errors
/// When another process holds the lock, or the lock file cannot be created.
pub fn lock(root: &Path) -> Result<StateLock, LockError> {
    let path = root.join("lock");
    // An existing lock file must be kept: the daemons exclude each other through its inode.
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.at("create", &path)?;
    match file.try_lock() {
        Ok(()) => Ok(StateLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(LockError::InUse(root.to_owned())),
        Err(TryLockError::Error(error)) => Ok(Err(error).at("lock", &path)?),
    }
}
