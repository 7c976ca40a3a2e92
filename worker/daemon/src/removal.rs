//! Takes processes off the MPS server of their GPU, for whoever is about to kill them: a client that is
//! killed at its work can take the server, and all other clients, with it.
//!
//! What hangs must not keep anybody from killing, so this ends in any case.

use std::time::Duration;

use cohabit_gpu::mps::{ClientRemoval, terminate_clients};
use nix::unistd::Pid;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long the server may take to confirm.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(4);

/// The longest time that this takes: even what should give up by itself may hang.
pub(crate) const REMOVAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Removes those of these processes that are clients.
///
/// # Errors
/// Why it is not known whether they are removed.
pub(crate) async fn remove(removal: ClientRemoval, processes: Vec<Pid>) -> Result<(), String> {
    let pids: Vec<i32> = processes.into_iter().map(Pid::as_raw).collect();
    let asked = spawn_blocking(move || terminate_clients(&removal, &pids, CONFIRM_TIMEOUT));
    match timeout(REMOVAL_TIMEOUT, asked).await {
        Ok(Ok(Ok(_))) => Ok(()),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(panic)) => Err(panic.to_string()),
        Err(_) => Err(format!("it did not answer for {} s", REMOVAL_TIMEOUT.as_secs())),
    }
}
