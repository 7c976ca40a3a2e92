//! The stream of a task at its caller: what has arrived, what was read, and when the maker is told.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::held::HeldId;
use crate::ids::CallNumber;
use crate::stream_window::{ItemTotal, StreamPosition};

/// A stream of which an item has arrived.
#[derive(Debug)]
pub(crate) struct StreamReader {
    /// The number of the last item that has arrived.
    arrived: u64,
    /// The sizes of those that nobody has read yet.
    sizes: VecDeque<u64>,
    unread: ItemTotal,
    /// Read, and the maker does not know.
    uncredited: ItemTotal,
}

/// An item on its way to the caller of its task.
#[derive(Debug)]
pub(crate) struct ArrivedItem {
    pub(crate) call: CallNumber,
    pub(crate) number: u64,
    pub(crate) item: Bytes,
    pub(crate) carries: Vec<HeldId>,
}

impl StreamReader {
    pub(crate) const fn new() -> StreamReader {
        StreamReader {
            arrived: 0,
            sizes: VecDeque::new(),
            unread: ItemTotal::NONE,
            uncredited: ItemTotal::NONE,
        }
    }

    /// An item of this size has arrived.
    pub(crate) fn arrive(&mut self, number: u64, bytes: u64) {
        self.arrived = number;
        self.sizes.push_back(bytes);
        self.unread.add(bytes);
    }

    /// The first unread item is read. What the maker is told, if it is told now: at half of its window, or if
    /// it may be paused.
    pub(crate) fn read(&mut self) -> Option<ItemTotal> {
        let bytes = self.sizes.pop_front()?;
        let may_be_paused = self.unread.with(self.uncredited).fills_window();
        self.unread.remove(ItemTotal { items: 1, bytes });
        self.uncredited.add(bytes);
        (may_be_paused || self.uncredited.fills_half()).then(|| self.take_uncredited())
    }

    /// Where the next runner goes on. It knows of all that was read.
    pub(crate) const fn resume(&mut self) -> StreamPosition {
        self.take_uncredited();
        StreamPosition { skip: self.arrived, unread: self.unread }
    }

    const fn take_uncredited(&mut self) -> ItemTotal {
        std::mem::replace(&mut self.uncredited, ItemTotal::NONE)
    }
}
