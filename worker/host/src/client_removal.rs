//! Removes processes from the MPS server of their GPU before they are killed: a client that is killed while
//! its kernels run can take the server, and all other clients, with it.
//!
//! A server or driver that hangs must not prevent the killing, so every call ends in bounded time.

use std::time::Duration;

use cohabit_gpu::mps::{ClientRemoval, terminate_clients};
use nix::unistd::Pid;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long the server may take to confirm.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(4);

/// The longest time that [`remove`] takes, even if the removal itself hangs.
pub const REMOVAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Removes those of these processes that are clients of the server.
///
/// # Errors
/// Why the removal was not confirmed.
pub async fn remove(removal: ClientRemoval, processes: Vec<Pid>) -> Result<(), String> {
    let pids: Vec<i32> = processes.into_iter().map(Pid::as_raw).collect();
    let removing = spawn_blocking(move || terminate_clients(&removal, &pids, CONFIRM_TIMEOUT));
    match timeout(REMOVAL_TIMEOUT, removing).await {
        Ok(Ok(Ok(_))) => Ok(()),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(panic)) => Err(panic.to_string()),
        Err(_) => Err(format!("the server did not answer within {} s", REMOVAL_TIMEOUT.as_secs())),
    }
}
