//! What will happen, in the order of time; at the same time, in the order in which it was put down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cohabit_types::Time;

/// Things to come. They stay where they were put down: only their times are sorted.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    sequence: u64,
    /// When, in which order, and where it is.
    times: BinaryHeap<Reverse<(Time, u64, usize)>>,
    entries: Vec<Option<T>>,
    /// Places that are free.
    free: Vec<usize>,
}

impl<T> EventQueue<T> {
    pub(crate) const fn new() -> EventQueue<T> {
        EventQueue { sequence: 0, times: BinaryHeap::new(), entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn put(&mut self, at: Time, what: T) {
        self.sequence += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.entries[place] = Some(what);
        self.times.push(Reverse((at, self.sequence, place)));
    }

    /// What comes next, and when.
    pub(crate) fn next(&mut self) -> Option<(Time, T)> {
        let Reverse((at, _, place)) = self.times.pop()?;
        self.free.push(place);
        let what = self.entries[place].take().expect("it was put down there");
        Some((at, what))
    }
}
