//! The errors that keep a head from starting, or end it.
//!
//! Each message says what is wrong, where, and what to do. The refusal of a single request is not among
//! them: it is a reply.

use std::io;
use std::path::{Path, PathBuf};

use cohabit_net::storage_remedy;
use cohabit_types::Bytes;

use crate::interference_source::InterferenceSource;
use crate::journal_failure::JournalFailure;

/// Why a head cannot start, or must end.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// A file or directory in the state directory cannot be used.
    #[error("cannot use {}: {}", path.display(), storage_remedy(source))]
    State {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// Users other than its owner may write to the state directory.
    #[error("other users can write to the state directory {}: run chmod 700 {}", path.display(), path.display())]
    WritableByOthers {
        /// The state directory.
        path: PathBuf,
    },
    /// The state directory is on a file system that cannot keep a journal safe.
    #[error(
        "the state directory {} is on a network file system ({kind}), where a journal may be lost: choose a directory \
         on a local disk with --state",
        path.display()
    )]
    NetworkFileSystem {
        /// The state directory.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },
    /// The disk of the state directory is full.
    #[error(
        "the disk of the state directory {} is full: {free} free. Nothing was changed: free disk space and start the \
         head again",
        path.display()
    )]
    Full {
        /// The state directory.
        path: PathBuf,
        /// The free space.
        free: Bytes,
    },
    /// Another head uses the state directory.
    #[error("another head uses the state directory {}: stop that head, or choose another directory with --state", path.display())]
    InUse {
        /// The state directory.
        path: PathBuf,
    },
    /// A cluster ran in the state directory, and its journal is missing or empty.
    #[error(
        "the journal {} is missing or empty, but a cluster ran in this directory: its jobs would be forgotten, and those \
         that run would be stopped. Restore the journal from a backup, or start an empty cluster with the same keys and \
         tokens: cohabit head start --new-cluster",
        path.display()
    )]
    JournalMissing {
        /// The journal.
        path: PathBuf,
    },
    /// The journal is damaged. Nothing was overwritten.
    #[error(
        "the journal {} is damaged: {what}. Nothing was overwritten: restore a backup, or move the file away and start an \
         empty cluster with --new-cluster",
        path.display()
    )]
    Corrupt {
        /// The journal.
        path: PathBuf,
        /// What is damaged.
        what: String,
    },
    /// The write-ahead log of the journal is damaged, with commits behind the damage: where, what is behind
    /// the damage, and what to do. Nothing was overwritten.
    #[error("{0}")]
    LogDamaged(String),
    /// The journal is sound, but this version would not continue as the one that wrote it. Nothing was
    /// overwritten.
    #[error(
        "this version of Cohabit cannot continue from the journal {}: {what}. Nothing was overwritten: start the version \
         that wrote the journal, or restore a backup",
        path.display()
    )]
    CannotContinue {
        /// The journal.
        path: PathBuf,
        /// What this version cannot do, and with which entry.
        what: String,
    },
    /// One event of the journal cannot be replayed. Nothing was overwritten.
    #[error(
        "event {event} of the journal {} {why}. Nothing was overwritten, and jobs run on: start the version that wrote the event, or set it aside with \
         `cohabit head recover --quarantine {event}`",
        path.display()
    )]
    CannotReplay {
        /// The journal.
        path: PathBuf,
        /// The number of the event.
        event: u64,
        /// Why it cannot be replayed.
        why: String,
    },
    /// A head that was to be recovered has never run in this directory.
    #[error("there is no journal of a head in {0}: give the head's state directory (--state)")]
    NoJournal(PathBuf),
    /// The event that is to be set aside can be replayed.
    #[error(
        "event {event} is not the one that stops the replay: `cohabit head recover` without flags names it"
    )]
    Replayable {
        /// The number of the event.
        event: u64,
    },
    /// A newer version of Cohabit wrote the journal. Nothing was overwritten.
    #[error(
        "{what} has format {found}, and this version of Cohabit reads formats up to {known}. Nothing was overwritten: \
         start the newer version"
    )]
    Newer {
        /// The journal, or the entry of it.
        what: String,
        /// Its format.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// The journal cannot be read or written.
    #[error("cannot use the journal {}: {}", path.display(), source.remedy())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The errors of SQLite and of the operating system.
        #[source]
        source: JournalFailure,
    },
    /// The head cannot listen on its address.
    #[error(transparent)]
    Listen(Box<cohabit_net::LinkError>),
    /// The cluster's keys or tokens cannot be read or written.
    #[error(transparent)]
    Secrets(#[from] cohabit_net::StateError),
    /// The first tokens cannot be created.
    #[error("cannot create the first tokens")]
    Token(#[source] cohabit_net::TokenStoreError),
    /// The policy's name or parameters are wrong.
    #[error(transparent)]
    Policy(#[from] cohabit_policy::PolicyParseError),
    /// The predictor of interference cannot be read.
    #[error("cannot use the source of slowdowns '{basis}' (--interference)")]
    Interference {
        /// The predictor.
        basis: InterferenceSource,
        /// Why, with the place in the file.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The program was built without trained models.
    #[error(
        "this program was built without models and cannot use the source of slowdowns '{basis}': choose \
         --interference law, or build it with the feature 'learned'"
    )]
    NoModels {
        /// The predictor.
        basis: InterferenceSource,
    },
    /// The tables of sensitivity cannot be read.
    #[error("cannot use the tables of --sensitivity")]
    Sensitivity(
        /// Why, with the file and the place in it.
        #[source]
        Box<dyn std::error::Error + Send + Sync>,
    ),
    /// The program was built without a reader of tables of sensitivity.
    #[error(
        "this program was built without learned models and cannot read {} (--sensitivity): leave the flag out, or build \
         it with the feature 'learned'",
        .0.display()
    )]
    NoSensitivity(PathBuf),
    /// The agents cannot be loaded.
    #[error("cannot use the agents of --agents")]
    Agents(
        /// Why, with the file.
        #[source]
        Box<dyn std::error::Error + Send + Sync>,
    ),
    /// The program was built without trained agents.
    #[error(
        "this program was built without learned models and cannot load {} (--agents): leave the flag out, or build it \
         with the feature 'learned'",
        .0.display()
    )]
    NoAgents(PathBuf),
    /// A part of the head failed that it cannot run without.
    #[error("the head failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl HeadError {
    /// Why an event cannot be replayed with which starts have ended.
    pub(crate) fn fatal_at_starts(starts: u32) -> String {
        match starts {
            1 => "ended the last start of the head".to_owned(),
            _ => format!("ended the last {starts} starts of the head"),
        }
    }

    /// For `map_err` at the use of a file or directory in the state directory.
    pub(crate) fn state(path: &Path) -> impl FnOnce(io::Error) -> HeadError + '_ {
        move |source| HeadError::State { path: path.to_owned(), source }
    }

    /// For `map_err` where the predictor of interference is read.
    #[cfg(feature = "learned")]
    pub(crate) fn unusable<E: std::error::Error + Send + Sync + 'static>(
        basis: &InterferenceSource,
    ) -> impl FnOnce(E) -> HeadError + '_ {
        move |source| HeadError::Interference { basis: basis.clone(), source: source.into() }
    }

    /// For `map_err` where a part fails that the head cannot run without.
    pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> HeadError {
        HeadError::Failed(error.into())
    }

    /// Whether the journal may become writable again, for example when the disk has free space.
    pub(crate) fn is_transient(&self) -> bool {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, FileLockingProtocolFailed, OutOfMemory,
            PermissionDenied, ReadOnly, SystemIoFailure,
        };
        let transient = [
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
                source.sqlite.sqlite_error_code().is_some_and(|code| transient.contains(&code))
            }
            HeadError::State { .. }
            | HeadError::WritableByOthers { .. }
            | HeadError::NetworkFileSystem { .. }
            | HeadError::Full { .. }
            | HeadError::InUse { .. }
            | HeadError::JournalMissing { .. }
            | HeadError::Corrupt { .. }
            | HeadError::LogDamaged(_)
            | HeadError::CannotContinue { .. }
            | HeadError::CannotReplay { .. }
            | HeadError::NoJournal(_)
            | HeadError::Replayable { .. }
            | HeadError::Newer { .. }
            | HeadError::Listen(_)
            | HeadError::Secrets(_)
            | HeadError::Token(_)
            | HeadError::Policy(_)
            | HeadError::Interference { .. }
            | HeadError::NoModels { .. }
            | HeadError::Sensitivity(_)
            | HeadError::NoSensitivity(_)
            | HeadError::Agents(_)
            | HeadError::NoAgents(_)
            | HeadError::Failed(_) => false,
        }
    }

    /// The message with all causes, in one line.
    pub(crate) fn message_with_causes(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |it| it.source());
        causes.fold(self.to_string(), |text, cause| format!("{text} ({cause})"))
    }

    /// The head ended without an error of its own.
    pub(crate) fn ended() -> HeadError {
        HeadError::Failed("it ended unexpectedly".into())
    }
}
