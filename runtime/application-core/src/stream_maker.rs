//! The stream of a running task at its maker: which items are sent, and when it pauses.

use crate::stream_window::{ItemTotal, StreamPosition};

/// What a running task has made. A task that returns a plain value makes no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamMaker {
    /// The number of the last item that it has made.
    made: u64,
    /// So many of the first items have arrived from an earlier runner, and are not sent again.
    skip: u64,
    /// Sent by this runner or an earlier one, and not credited.
    unread: ItemTotal,
}

impl StreamMaker {
    pub(crate) const fn new(resume: Option<&StreamPosition>) -> StreamMaker {
        match resume {
            None => StreamMaker { made: 0, skip: 0, unread: ItemTotal::NONE },
            Some(position) => StreamMaker { made: 0, skip: position.skip, unread: position.unread },
        }
    }

    /// One more item: its number, if it is to be sent.
    pub(crate) const fn make(&mut self, bytes: u64) -> Option<u64> {
        self.made += 1;
        if self.made <= self.skip {
            return None;
        }
        self.unread.add(bytes);
        Some(self.made)
    }

    /// Whether the next item may be made. Those that are not sent take up no window.
    pub(crate) const fn may_make(&self) -> bool {
        self.made < self.skip || !self.unread.fills_window()
    }

    /// Items were read. Whether the next one may be made that might not before.
    pub(crate) const fn credit(&mut self, read: ItemTotal) -> bool {
        let paused = !self.may_make();
        self.unread.remove(read);
        paused && self.may_make()
    }
}
