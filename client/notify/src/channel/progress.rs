//! How far a channel has come: which entries are done, which are held back, and where to read on.
//!
//! Entries are done in order, except for those that are held back to be told together. The cursor stays
//! before the first of these, and what was delivered behind it is remembered, so that a restart neither loses
//! nor repeats anything.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_client::types::{FeedCursor, FeedEntry, Time};

use crate::state_file::ChannelState;

/// How far a channel has come.
#[derive(Debug)]
pub(super) struct ChannelProgress {
    /// Everything up to here is done.
    cursor: FeedCursor,
    /// Where to read on.
    read: FeedCursor,
    /// What was looked at behind the cursor; the first of it is held back.
    beyond: BTreeMap<u64, (Time, EntryStage)>,
    /// What an earlier run delivered, and this one has not come to yet.
    earlier: BTreeSet<u64>,
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryStage {
    /// It was not for this channel.
    Passed,
    Delivered,
    Held,
}

impl ChannelProgress {
    /// Where an earlier run ended.
    pub(super) fn after(state: &ChannelState) -> ChannelProgress {
        let (cursor, earlier) = (state.cursor(), state.delivered.iter().copied().collect());
        ChannelProgress { cursor, read: cursor, beyond: BTreeMap::new(), earlier }
    }

    /// Where to read on.
    pub(super) const fn read(&self) -> FeedCursor {
        self.read
    }

    /// What to note on the disk.
    pub(super) fn state(&self) -> ChannelState {
        let delivered = self.beyond.iter().filter(|(_, (_, stage))| *stage == EntryStage::Delivered);
        let delivered = delivered.map(|(number, _)| *number).chain(self.earlier.iter().copied());
        ChannelState::new(self.cursor, delivered.collect())
    }

    /// Whether an earlier run has delivered the entry, which is then done.
    pub(super) fn was_delivered(&mut self, entry: &FeedEntry) -> bool {
        let was_delivered = self.earlier.remove(&entry.number);
        if was_delivered {
            self.deliver(entry);
        }
        was_delivered
    }

    /// The entry is not for this channel, or was given up.
    pub(super) fn pass(&mut self, entry: &FeedEntry) {
        self.set(entry, EntryStage::Passed);
    }

    pub(super) fn deliver(&mut self, entry: &FeedEntry) {
        self.set(entry, EntryStage::Delivered);
    }

    pub(super) fn hold(&mut self, entry: &FeedEntry) {
        self.set(entry, EntryStage::Held);
    }

    fn set(&mut self, entry: &FeedEntry, stage: EntryStage) {
        self.beyond.insert(entry.number, (entry.event.at, stage));
        self.read = FeedCursor { number: entry.number, at: entry.event.at };
        self.settle();
    }

    /// Entries that were held back are done.
    pub(super) fn release(&mut self, entries: &[FeedEntry]) {
        for entry in entries {
            self.beyond.insert(entry.number, (entry.event.at, EntryStage::Delivered));
        }
        self.settle();
    }

    /// All entries up to here were looked at.
    pub(super) fn read_up_to(&mut self, next: FeedCursor) {
        self.read = next;
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(first) = self.beyond.first_entry()
            && first.get().1 != EntryStage::Held
        {
            let (number, (at, _)) = first.remove_entry();
            self.cursor = FeedCursor { number, at };
        }
        if self.beyond.is_empty() {
            self.cursor = self.read;
            self.earlier.retain(|number| *number > self.read.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::samples::{at, ended, entry};

    fn start() -> ChannelProgress {
        ChannelProgress::after(&ChannelState::new(FeedCursor::START, Vec::new()))
    }

    fn noted(progress: &ChannelProgress) -> (u64, Vec<u64>) {
        (progress.state().cursor().number, progress.state().delivered)
    }

    fn numbered(number: u64) -> FeedEntry {
        entry(number, ended(number))
    }

    #[test]
    fn the_cursor_follows_what_is_done() {
        let mut progress = start();
        progress.pass(&numbered(1));
        progress.deliver(&numbered(2));
        assert_eq!(noted(&progress), (2, vec![]));
        let next = FeedCursor { number: 9, at: at(9) };
        progress.read_up_to(next);
        assert_eq!((progress.state().cursor(), progress.read()), (next, next));
    }

    #[test]
    fn the_cursor_stays_before_what_is_held_back_and_deliveries_behind_it_are_noted() {
        let mut progress = start();
        progress.deliver(&numbered(1));
        progress.hold(&numbered(2));
        progress.deliver(&numbered(3));
        progress.hold(&numbered(4));
        progress.pass(&numbered(5));
        assert_eq!((noted(&progress), progress.read().number), ((1, vec![3]), 5));
        progress.release(&[numbered(2)]);
        assert_eq!(noted(&progress), (3, vec![]));
        progress.release(&[numbered(4)]);
        assert_eq!(noted(&progress), (5, vec![]));
    }

    #[test]
    fn a_restart_repeats_what_was_held_and_nothing_else() {
        let mut progress = start();
        progress.hold(&numbered(1));
        progress.deliver(&numbered(2));
        progress.hold(&numbered(3));
        progress.deliver(&numbered(4));
        let mut again = ChannelProgress::after(&progress.state());
        assert_eq!(again.read(), FeedCursor::START);
        let told: Vec<bool> = (1..=4).map(|number| again.was_delivered(&numbered(number))).collect();
        assert_eq!(told, [false, true, false, true]);
        let mut again = ChannelProgress::after(&progress.state());
        again.deliver(&numbered(1));
        assert_eq!(noted(&again), (1, vec![2, 4]), "those of the earlier run stay noted until they are met");
        assert!(again.was_delivered(&numbered(2)));
        assert_eq!(noted(&again), (2, vec![4]));
    }
}
