//! What a member of an application runs in: a process of its own, or a thread of a test.

use std::future::pending;
use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;

/// What a member runs in.
#[derive(Debug)]
pub(crate) enum Surroundings {
    /// A process that a worker has started.
    Process,
    /// A thread of a process that all of the application runs in.
    Thread {
        /// For its checkpoints.
        checkpoints: PathBuf,
    },
}

/// The word that a member is to end.
#[derive(Debug)]
pub(crate) enum EndRequest {
    Signal(Signal),
    Word(UnboundedReceiver<()>),
}

impl Surroundings {
    /// The directory for checkpoints.
    pub(crate) fn checkpoints(&self) -> Option<PathBuf> {
        match self {
            Surroundings::Process => std::env::var_os("COHABIT_CHECKPOINT_DIR").map(PathBuf::from),
            Surroundings::Thread { checkpoints } => Some(checkpoints.clone()),
        }
    }

    /// Whether the process ends with the member.
    pub(crate) const fn is_process(&self) -> bool {
        match self {
            Surroundings::Process => true,
            Surroundings::Thread { .. } => false,
        }
    }
}

impl EndRequest {
    /// By SIGTERM, as workers end processes.
    ///
    /// # Errors
    /// In words, if the system refuses to tell.
    pub(crate) fn by_signal() -> Result<EndRequest, String> {
        let terminate = signal(SignalKind::terminate());
        terminate.map(EndRequest::Signal).map_err(|error| format!("cannot wait for SIGTERM: {error}"))
    }

    /// Waits until it is said.
    pub(crate) async fn said(&mut self) {
        let said = match self {
            EndRequest::Signal(signal) => signal.recv().await,
            EndRequest::Word(word) => word.recv().await,
        };
        if said.is_none() {
            // Nobody can say it any more.
            pending().await
        }
    }
}
