//! The queue of simulated events, ordered by time and then by insertion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cohabit_types::Time;

/// A queue of future events. Entries stay where they were inserted; only their times are sorted.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    sequence: u64,
    /// Time, sequence number and index into `entries`.
    times: BinaryHeap<Reverse<(Time, u64, usize)>>,
    entries: Vec<Option<T>>,
    /// Unused indices of `entries`.
    free: Vec<usize>,
}

impl<T> EventQueue<T> {
    pub(crate) const fn new() -> EventQueue<T> {
        EventQueue { sequence: 0, times: BinaryHeap::new(), entries: Vec::new(), free: Vec::new() }
    }

    /// Adds an event at this time.
    pub(crate) fn put(&mut self, at: Time, event: T) {
        self.sequence += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.entries[place] = Some(event);
        self.times.push(Reverse((at, self.sequence, place)));
    }

    /// Removes the next event and returns it with its time.
    pub(crate) fn next(&mut self) -> Option<(Time, T)> {
        let Reverse((at, _, place)) = self.times.pop()?;
        self.free.push(place);
        let event = self.entries[place].take().expect("an index in the queue has an entry");
        Some((at, event))
    }
}
