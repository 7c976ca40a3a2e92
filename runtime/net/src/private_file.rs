//! Files that only their owner may read: keys, tokens, the token store.
//!
//! A file is written under another name with mode 0600, made durable, and then renamed: a reader sees the old
//! file or the new one, never half of one, and never one that others may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::storage_remedy;

/// Why a file of the state directory cannot be used. Each variant names the file.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read.
    #[error("cannot read {} ({source}): {}", path.display(), storage_remedy(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write {} ({source}): {}", path.display(), storage_remedy(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others than the owner may read it, and it holds a secret.
    #[error("other users can read {} (mode {mode:o}): run chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Its contents are not valid.
    #[error("cannot use {}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl StateError {
    fn read(path: &Path) -> impl FnOnce(io::Error) -> StateError + use<> {
        let path = path.to_owned();
        move |source| StateError::Read { path, source }
    }

    fn write(path: &Path) -> impl FnOnce(io::Error) -> StateError + use<> {
        let path = path.to_owned();
        move |source| StateError::Write { path, source }
    }

    pub(crate) fn invalid(path: &Path, reason: impl std::fmt::Display) -> StateError {
        StateError::Invalid { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Makes the directory with mode 0700, or takes away what others may do in it.
pub(crate) fn create_folder(folder: &Path) -> Result<(), StateError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o700)))
        .map_err(StateError::write(folder))
}

/// Reads a file that nobody else may read; none if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(StateError::read(path))?,
    };
    let mode = file.metadata().map_err(StateError::read(path))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(StateError::Exposed { path: path.to_owned(), mode });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(StateError::read(path))?;
    Ok(Some(bytes))
}

/// Replaces a file by one with these bytes, at once and durably.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let fresh = beside(path);
    write_new(&fresh, bytes)
        .and_then(|()| fs::rename(&fresh, path))
        .and_then(|()| File::open(folder_of(path))?.sync_all())
        .map_err(StateError::write(path))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A leftover of a crash keeps its own mode and could be a symbolic link: never write into it.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_private_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(beside(&path), "left by a crash").unwrap();
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some(&b"two"[..]));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_command_that_helps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        replace(&path, b"one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("mode 640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_state_directory_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        create_folder(&inner).unwrap();
        assert_eq!(fs::metadata(&inner).unwrap().mode() & 0o777, 0o700);
    }
}
