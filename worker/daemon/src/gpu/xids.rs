//! Receives critical errors of GPUs, which the driver reports by Xid codes.
//!
//! Waiting for them takes a thread, which ends when the receiver is dropped or the driver reports no more
//! errors.

use std::io;
use std::thread;
use std::time::Duration;

use cohabit_gpu::{GpuError, Xid, XidWatch};
use tokio::sync::mpsc;

/// How often the thread checks whether the receiver still exists.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Errors that may be queued. They come in bursts, and the first of a burst says most.
const ERRORS: usize = 64;

/// The errors of this watch, until it ends.
///
/// # Errors
/// When no thread can be started.
pub(crate) fn listen_for_xids(watch: XidWatch) -> io::Result<mpsc::Receiver<Xid>> {
    let (sender, receiver) = mpsc::channel(ERRORS);
    thread::Builder::new().name("xids".into()).spawn(move || listen(&watch, &sender))?;
    Ok(receiver)
}

fn listen(watch: &XidWatch, sender: &mpsc::Sender<Xid>) {
    while !sender.is_closed() {
        match watch.next(CHECK_INTERVAL) {
            Ok(Some(xid)) => {
                // A dropped receiver is noticed by the loop.
                let _ = sender.blocking_send(xid);
            }
            Ok(None) => {}
            // Other GPUs may still report errors.
            Err(GpuError::Lost(why) | GpuError::Other(why)) => {
                tracing::warn!(why, "critical errors of this GPU are no longer received")
            }
            Err(GpuError::Closed(why)) => {
                return tracing::info!(why, "critical errors of GPUs are no longer received");
            }
        }
    }
}
