//! Frames on their way to one connection: many go out with one write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cohabit_application_core::{MAX_ARGUMENTS, MAX_ATTACHED};
use serde::Serialize;
use tokio::sync::Notify;

use super::frame_codec::append_frame;

/// The longest frame: the largest arguments, with what stands beside them.
pub(super) const MAX_FRAME: usize = MAX_ARGUMENTS + MAX_ATTACHED + (3 << 20);

/// A buffer that is larger is not kept for the next frames.
const KEPT_BYTES: usize = 1 << 20;

/// What waits to be written to one connection.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    waiting: Mutex<WaitingBytes>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct WaitingBytes {
    bytes: Vec<u8>,
    is_closed: bool,
}

impl SendBuffer {
    /// Appends a frame.
    ///
    /// # Panics
    /// If it is longer than any frame: what is in it was checked before.
    pub(crate) fn push<T: Serialize>(&self, frame: &T) {
        let mut waiting = self.waiting();
        append_frame(frame, MAX_FRAME, &mut waiting.bytes).expect("a frame within the limits");
        drop(waiting);
        self.changed.notify_one();
    }

    /// Lets the connection write what it has to, such as an acknowledgement.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Ends the connection, without what waits.
    pub(crate) fn close(&self) {
        self.waiting().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits until there may be something to write.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What is to be written now, in exchange for a buffer that was written; none if the connection is to
    /// end.
    pub(super) fn take(&self, mut written: Vec<u8>) -> Option<Vec<u8>> {
        written.clear();
        written.shrink_to(KEPT_BYTES);
        let mut waiting = self.waiting();
        let is_open = !waiting.is_closed;
        is_open.then(|| std::mem::replace(&mut waiting.bytes, written))
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingBytes> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
