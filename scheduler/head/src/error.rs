//! Everything that can keep a head from starting, or end it.
//!
//! Each variant says what is wrong, where, and what to do. Refusals of single requests are none of these:
//! they are replies.

use std::io;
use std::path::{Path, PathBuf};

use cohabit_types::Bytes;

use crate::interference_source::InterferenceSource;

/// Why a head cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// A file or folder of the state folder cannot be used.
    #[error("cannot use {}: check that it belongs to the user who runs the head", path.display())]
    State {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Others than its owner may write into the state folder.
    #[error("others may write into the state folder {}: run chmod 700 {}", path.display(), path.display())]
    Exposed {
        /// The state folder.
        path: PathBuf,
    },
    /// The state folder is on a file system that cannot keep a journal safe.
    #[error(
        "the state folder {} is on a network file system ({kind}), which may lose a journal: choose one on a local \
         disk",
        path.display()
    )]
    NetworkFileSystem {
        /// The state folder.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },
    /// The disk of the state folder is full.
    #[error(
        "the disk of the state folder {} is full: {free} are left. Nothing was changed: make room, and start the head \
         again",
        path.display()
    )]
    Full {
        /// The state folder.
        path: PathBuf,
        /// What is left.
        free: Bytes,
    },
    /// Another head uses the state folder.
    #[error("another head uses the state folder {}: stop it, or choose another folder", path.display())]
    InUse {
        /// The state folder.
        path: PathBuf,
    },
    /// The journal is damaged; nothing of it was overwritten.
    #[error(
        "the journal {} is damaged: {what}. Nothing was overwritten: put a backup in its place, or move it away to \
         start an empty cluster",
        path.display()
    )]
    Corrupt {
        /// The journal.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// A newer version of Cohabit wrote the journal; nothing of it was overwritten.
    #[error(
        "the journal {} has format {found}, and this version of Cohabit reads formats up to {known}. Nothing was \
         overwritten: start the newer version",
        path.display()
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that is understood.
        known: u32,
    },
    /// The journal cannot be read or written.
    #[error("cannot use the journal {}: check the disk's free space and the file's permissions", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(Box<cohabit_net::LinkError>),
    /// The cluster's identity or its tokens cannot be read or written.
    #[error(transparent)]
    Secrets(#[from] cohabit_net::StateError),
    /// A token of the first start cannot be made.
    #[error("cannot make the first tokens")]
    Token(#[source] cohabit_net::TokenStoreError),
    /// No policy has the wanted name.
    #[error(transparent)]
    Policy(#[from] cohabit_policy::PolicyParseError),
    /// What the head is to go by when jobs share GPUs cannot be used.
    #[error("the head cannot go by '{basis}' when jobs share GPUs")]
    Interference {
        /// What it is to go by.
        basis: InterferenceSource,
        /// Why not; where in the file.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This program was built without models of interference.
    #[error(
        "this program was built without models and cannot go by '{basis}': choose law, or build it with the feature \
         'learned'"
    )]
    NoModels {
        /// What it is to go by.
        basis: InterferenceSource,
    },
    /// Something that the head cannot do without has failed.
    #[error("the head cannot go on")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl HeadError {
    /// For `map_err` where a file or folder of the state folder is touched.
    pub(crate) fn state(path: &Path) -> impl FnOnce(io::Error) -> HeadError + '_ {
        move |source| HeadError::State { path: path.to_owned(), source }
    }

    /// For `map_err` where what the head is to go by is read.
    #[cfg(feature = "learned")]
    pub(crate) fn unusable<E: std::error::Error + Send + Sync + 'static>(
        basis: &InterferenceSource,
    ) -> impl FnOnce(E) -> HeadError + '_ {
        move |source| HeadError::Interference { basis: basis.clone(), source: source.into() }
    }

    /// For `map_err` where something that must not fail has failed.
    pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> HeadError {
        HeadError::Failed(error.into())
    }

    /// Whether the journal may be written again later, once the disk has room or is well.
    pub(crate) fn is_transient(&self) -> bool {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, FileLockingProtocolFailed, OutOfMemory,
            PermissionDenied, ReadOnly, SystemIoFailure,
        };
        let passing = [
            CannotOpen,
            DatabaseBusy,
            DatabaseLocked,
            DiskFull,
            FileLockingProtocolFailed,
            OutOfMemory,
            PermissionDenied,
            ReadOnly,
            SystemIoFailure,
        ];
        match self {
            HeadError::Journal { source, .. } => {
                source.sqlite_error_code().is_some_and(|code| passing.contains(&code))
            }
            HeadError::State { .. }
            | HeadError::Exposed { .. }
            | HeadError::NetworkFileSystem { .. }
            | HeadError::Full { .. }
            | HeadError::InUse { .. }
            | HeadError::Corrupt { .. }
            | HeadError::Newer { .. }
            | HeadError::Listen(_)
            | HeadError::Secrets(_)
            | HeadError::Token(_)
            | HeadError::Policy(_)
            | HeadError::Interference { .. }
            | HeadError::NoModels { .. }
            | HeadError::Failed(_) => false,
        }
    }

    /// What went wrong, with everything behind it, in one line.
    pub(crate) fn told(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |it| it.source());
        causes.fold(self.to_string(), |told, cause| format!("{told} ({cause})"))
    }

    /// The head has ended without a failure of its own.
    pub(crate) fn ended() -> HeadError {
        HeadError::Failed("it has ended".into())
    }
}
