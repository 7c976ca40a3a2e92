//! How far a stream has come, and how many items of it may be unread.

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_UNREAD_BYTES, MAX_UNREAD_ITEMS};

/// Items of a stream: how many, and how large they are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemTotal {
    /// Their number.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where a new runner goes on with a stream of which items have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPosition {
    /// The number of the last item that has arrived: the next one is the first that is sent.
    pub skip: u64,
    /// Those that have arrived and that nobody has read yet: they take up the window.
    pub unread: ItemTotal,
}

impl ItemTotal {
    pub(crate) const NONE: ItemTotal = ItemTotal { items: 0, bytes: 0 };

    pub(crate) const fn add(&mut self, bytes: u64) {
        self.items += 1;
        self.bytes += bytes;
    }

    pub(crate) const fn remove(&mut self, read: ItemTotal) {
        self.items = self.items.saturating_sub(read.items);
        self.bytes = self.bytes.saturating_sub(read.bytes);
    }

    pub(crate) const fn with(self, other: ItemTotal) -> ItemTotal {
        ItemTotal { items: self.items + other.items, bytes: self.bytes + other.bytes }
    }

    /// Whether the next item may not be made as long as so much is unread.
    pub(crate) const fn fills_window(self) -> bool {
        self.items >= MAX_UNREAD_ITEMS || self.bytes >= MAX_UNREAD_BYTES
    }

    /// Whether it is at least half of what may be unread.
    pub(crate) const fn fills_half(self) -> bool {
        self.items >= MAX_UNREAD_ITEMS / 2 || self.bytes >= MAX_UNREAD_BYTES / 2
    }
}
