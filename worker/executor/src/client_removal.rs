//! The removal of a rank's processes from the MPS server of their GPU, once, before they are killed.

use std::future::pending;
use std::time::Duration;

use cohabit_gpu::mps::ClientRemoval;
use cohabit_host::client_removal::{REMOVAL_TIMEOUT, remove};
use tokio::task::JoinHandle;

use crate::error_log::log_error;
use crate::process_tree::ProcessTree;

/// The state of the removal.
#[derive(Debug)]
pub(crate) enum RemovalState {
    /// Not yet requested.
    Pending(ClientRemoval),
    /// Requested from the server.
    Running(JoinHandle<Result<(), String>>),
    /// Done, or not needed because the rank is no client.
    Done,
}

impl RemovalState {
    pub(crate) fn new(removal: Option<ClientRemoval>) -> RemovalState {
        removal.map_or(RemovalState::Done, RemovalState::Pending)
    }

    /// Starts the removal, unless it was started before. Returns how long to wait for it.
    pub(crate) async fn begin(&mut self, process_tree: &ProcessTree) -> Option<Duration> {
        let RemovalState::Pending(removal) = self else { return None };
        let removal = removal.clone();
        let processes = process_tree.living().await.iter().map(|process| process.pid).collect();
        *self = RemovalState::Running(tokio::spawn(remove(removal, processes)));
        Some(REMOVAL_TIMEOUT)
    }

    /// Waits for the end of a running removal. Logs if the server did not confirm it.
    pub(crate) async fn finished(&mut self) {
        let RemovalState::Running(removal) = self else { return pending().await };
        let result = removal.await.unwrap_or_else(|panic| Err(panic.to_string()));
        *self = RemovalState::Done;
        if let Err(error) = result {
            log_error(&format!("killing without confirmation from the MPS server: {error}"));
        }
    }
}
