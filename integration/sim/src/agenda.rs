//! What will happen, in the order of time; at the same time, in the order in which it was put down.

use std::collections::BTreeMap;

use cohabit_proto::Time;

/// Things to come.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    sequence: u64,
    entries: BTreeMap<(Time, u64), T>,
}

impl<T> Agenda<T> {
    pub(crate) const fn new() -> Agenda<T> {
        Agenda { sequence: 0, entries: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, at: Time, what: T) {
        self.sequence += 1;
        self.entries.insert((at, self.sequence), what);
    }

    /// What comes next, and when.
    pub(crate) fn next(&mut self) -> Option<(Time, T)> {
        self.entries.pop_first().map(|((at, _), what)| (at, what))
    }
}
