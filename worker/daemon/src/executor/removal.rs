//! How far a rank has been taken off the MPS server of its GPU, which comes once, before it is killed.

use std::future::pending;
use std::time::Duration;

use cohabit_gpu::mps;
use tokio::task::JoinHandle;

use super::log_error;
use super::process_tree::ProcessTree;
use crate::removal::{REMOVAL_TIMEOUT, remove};

/// The one removal of a rank.
#[derive(Debug)]
pub(crate) enum Removal {
    /// Nothing was done yet.
    Ahead(mps::ClientRemoval),
    /// The server was asked.
    UnderWay(JoinHandle<Result<(), String>>),
    /// There is nothing more to do; from the beginning, if the rank is no client.
    Over,
}

impl Removal {
    pub(crate) fn of(removal: Option<mps::ClientRemoval>) -> Removal {
        removal.map_or(Removal::Over, Removal::Ahead)
    }

    /// Begins to remove the rank's processes. Says how long that may take, if it is worth waiting for.
    pub(crate) fn begin(&mut self, process_tree: &ProcessTree) -> Option<Duration> {
        let Removal::Ahead(removal) = self else { return None };
        let processes = process_tree.living().iter().map(|process| process.pid).collect();
        *self = Removal::UnderWay(tokio::spawn(remove(removal.clone(), processes)));
        Some(REMOVAL_TIMEOUT)
    }

    /// Waits for the end of a removal that is under way. If the server did not confirm it, the executor's log
    /// says so.
    pub(crate) async fn ended(&mut self) {
        let Removal::UnderWay(removal) = self else { return pending().await };
        let ended = removal.await.unwrap_or_else(|panic| Err(panic.to_string()));
        *self = Removal::Over;
        if let Err(trouble) = ended {
            log_error(&format!("killed without the word of its MPS server: {trouble}"));
        }
    }
}
