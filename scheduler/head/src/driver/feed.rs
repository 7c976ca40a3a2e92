//! What an event adds to the feed: written with the history, under the number of the event.

use cohabit_types::FeedEvent;

use super::state::Driver;
use crate::history::FeedWrite;
use crate::journal::JournalWrite;

/// The event that the head handles, and how much it has added to the feed so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct FeedPlace {
    sequence: u64,
    ordinal: u32,
}

impl FeedPlace {
    /// Before anything that the event of this number adds.
    pub(super) const fn of(sequence: u64) -> FeedPlace {
        FeedPlace { sequence, ordinal: 0 }
    }
}

impl Driver {
    pub(super) fn add_to_feed(&mut self, event: Box<FeedEvent>) {
        let FeedPlace { sequence, ordinal } = self.feed_place;
        self.feed_place.ordinal += 1;
        self.history.push(JournalWrite::Feed(FeedWrite { sequence, ordinal, event }));
    }
}
