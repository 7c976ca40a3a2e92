//! Critical errors of GPUs, as the driver reports them by their Xid numbers.
//!
//! To wait for them takes a thread: it ends when nobody listens any more, or the driver has no more to tell.

use std::io;
use std::thread;
use std::time::Duration;

use cohabit_gpu::{GpuError, Xid, XidWatch};
use tokio::sync::mpsc;

/// How often the thread looks whether anybody still listens.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Errors that may wait to be heard. They come in bursts, and the first of a burst tells the most.
const ERRORS: usize = 64;

/// Everything that this watch will see; ends when it sees no more.
///
/// # Errors
/// When the machine has no more threads.
pub(crate) fn listen_for_xids(watch: XidWatch) -> io::Result<mpsc::Receiver<Xid>> {
    let (sender, receiver) = mpsc::channel(ERRORS);
    thread::Builder::new().name("xids".into()).spawn(move || listen(&watch, &sender))?;
    Ok(receiver)
}

fn listen(watch: &XidWatch, sender: &mpsc::Sender<Xid>) {
    while !sender.is_closed() {
        match watch.next(CHECK_INTERVAL) {
            Ok(Some(xid)) => {
                // Whether anybody still listens is asked in a moment.
                let _ = sender.blocking_send(xid);
            }
            Ok(None) => {}
            // The others may still be heard.
            Err(GpuError::Lost(why) | GpuError::Other(why)) => {
                tracing::warn!(why, "no critical errors of this GPU are heard of any more")
            }
            Err(GpuError::Closed(why)) => {
                return tracing::info!(why, "no critical errors of GPUs are heard of any more");
            }
        }
    }
}
