//! Work that blocks a thread: files, `/proc`, fsync, directories, processes, joining threads.
//!
//! An async thread that blocks delays every task of the daemon, so daemons pass such work to [`blocking`].
//! A test (`integration/tests/architecture/blocking.rs`) finds calls of `std::fs` and the like that do not.

use std::future::pending;
use std::panic::resume_unwind;
use tokio::task::spawn_blocking;

/// Runs `work` on a thread for blocking work, and waits for its result without blocking.
///
/// Put all that one step needs into one call: each call costs two context switches. Dropping the future
/// does not stop work that has begun.
///
/// # Panics
/// If `work` panics, with the same payload: the panic is the failure of the task that waits.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(payload)) => resume_unwind(payload),
        // Only a runtime that shuts down cancels the work, and it drops this task as well.
        Err(Err(_)) => pending().await,
    }
}
