//! Why there is no worker daemon, or why it has ended.

use std::io;
use std::path::PathBuf;

use cohabit_actor::ActorSystemError;
use cohabit_gpu::mps::MpsError;
use cohabit_host::files::FileError;
use cohabit_host::state_lock::LockError;
use cohabit_net::LinkError;
use cohabit_store::ContentError;

/// Why there is no worker daemon, or why it has ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Another process holds the state directory.
    #[error(
        "another worker uses the state directory '{}': stop it, or give this one another directory with --state",
        .0.display()
    )]
    StateInUse(PathBuf),
    /// The state directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The directory of stored code cannot be used.
    #[error(transparent)]
    Store(#[from] ContentError),
    /// The directory for the MPS daemon of a GPU cannot be created.
    #[error(transparent)]
    Mps(#[from] MpsError),
    /// The properties of this host cannot be read.
    #[error("the properties of this host cannot be read: {0}")]
    Machine(io::Error),
    /// The head refuses this worker, and trying again does not help.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// An actor of the daemon has failed.
    #[error(transparent)]
    Failed(#[from] ActorSystemError),
    /// The daemon ended unexpectedly.
    #[error("the worker daemon ended unexpectedly: {0}")]
    Ended(String),
}

impl From<LockError> for WorkerError {
    fn from(error: LockError) -> WorkerError {
        match error {
            LockError::InUse(directory) => WorkerError::StateInUse(directory),
            LockError::File(error) => WorkerError::File(error),
        }
    }
}
