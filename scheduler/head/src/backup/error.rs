//! Why a backup cannot be made or restored.

use std::io;
use std::path::{Path, PathBuf};

use cohabit_net::storage_remedy;
use cohabit_types::{Bytes, Span};

use crate::HeadError;

/// Why a backup cannot be made or restored. In both cases nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The journal or the state directory cannot be used.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// A file or directory cannot be read or written.
    #[error("cannot use {} ({source}): {}", path.display(), storage_remedy(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The state directory is that of another account.
    #[error(
        "the state directory {} belongs to the account with the user id {owner}: run this command as that account",
        path.display()
    )]
    OtherAccount {
        /// The state directory.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
    /// The file of the backup exists.
    #[error("{} exists: give another name, or replace it with --force", _0.display())]
    Exists(PathBuf),
    /// The file of the backup has no name, or is a directory.
    #[error("{} is not the name of a file: name the file to write the backup to", _0.display())]
    NoFile(PathBuf),
    /// The backup would be lost together with what it is a backup of.
    #[error(
        "{} is inside the state directory: write the backup elsewhere, at best to another disk",
        _0.display()
    )]
    InsideState(PathBuf),
    /// Files changed again and again while they were copied.
    #[error("{} changed while it was copied, several times: try again", _0.display())]
    Changed(PathBuf),
    /// A state directory has more files than a backup may hold.
    #[error("the state directory {} has more than {most} files of code and models", state.display())]
    TooManyFiles {
        /// The state directory.
        state: PathBuf,
        /// The bound.
        most: usize,
    },
    /// The file is no backup, or is damaged.
    #[error("cannot restore {}: {what}. Nothing was changed", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A newer version of Cohabit made the backup.
    #[error(
        "the backup {} has format {found}, and this version of Cohabit reads formats up to {known}: restore it with \
         release {release} or later",
        file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
        /// The release that made the backup.
        release: String,
    },
    /// The new state directory holds something.
    #[error(
        "the directory {} is not empty: give one that is, or that does not exist (--state)",
        _0.display()
    )]
    NotEmpty(PathBuf),
    /// The disk has no room for what is in the backup.
    #[error("{} has {free} free, and the backup needs {needed}: free space, or choose another directory with --state", path.display())]
    NoRoom {
        /// Where it would be unpacked.
        path: PathBuf,
        /// What is free there.
        free: Bytes,
        /// What it needs.
        needed: Bytes,
    },
    /// The machine's clock is wrong.
    #[error(
        "the clock of this machine is {behind} behind the last event of the backup: set it first, because numbers of jobs \
         go on by the time that has passed"
    )]
    Clock {
        /// By how much.
        behind: Span,
    },
}

impl BackupError {
    /// For `map_err` at the use of a file or directory.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> BackupError + '_ {
        move |source| BackupError::Io { path: path.to_owned(), source }
    }
}
