//! What an event adds to the feed and to reports: written with the history, under the number of the event.

use cohabit_scheduler_core::AccountingEntry;
use cohabit_types::FeedEvent;

use super::state::Driver;
use crate::history::{AccountingWrite, FeedWrite};
use crate::journal::JournalWrite;

/// The event that the head handles, and how much it has added to the feed and to reports so far.
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

    /// The number of the event, and the place of what it adds next.
    const fn next(&mut self) -> (u64, u32) {
        let next = (self.sequence, self.ordinal);
        self.ordinal += 1;
        next
    }
}

impl Driver {
    pub(super) fn add_to_feed(&mut self, event: Box<FeedEvent>) {
        let (sequence, ordinal) = self.feed_place.next();
        self.history.push(JournalWrite::Feed(FeedWrite { sequence, ordinal, event }));
    }

    pub(super) fn account(&mut self, entry: Box<AccountingEntry>) {
        let place = self.feed_place.next();
        self.history.push(JournalWrite::Account(AccountingWrite { place, entry }));
    }
}
