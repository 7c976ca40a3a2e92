//! The queue of simulated events, ordered by time and then by insertion.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
    /// Events that came in the order of their times, with their sequence numbers: all submissions of a run,
    /// which would make the heap deep until its end.
    in_order: VecDeque<(Time, u64, T)>,
}

impl<T> EventQueue<T> {
    pub(crate) const fn new() -> EventQueue<T> {
        EventQueue {
            sequence: 0,
            times: BinaryHeap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            in_order: VecDeque::new(),
        }
    }

    /// Adds an event of a list that is mostly sorted by time.
    pub(crate) fn put_in_order(&mut self, at: Time, event: T) {
        if self.in_order.back().is_some_and(|(last, ..)| at < *last) {
            return self.put(at, event);
        }
        self.sequence += 1;
        self.in_order.push_back((at, self.sequence, event));
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
        let in_order = self.in_order.front().map(|(at, sequence, _)| (*at, *sequence));
        let in_heap = self.times.peek().map(|Reverse((at, sequence, _))| (*at, *sequence));
        if let Some(first) = in_order
            && in_heap.is_none_or(|heap| first < heap)
        {
            return self.in_order.pop_front().map(|(at, _, event)| (at, event));
        }
        let Reverse((at, _, place)) = self.times.pop()?;
        self.free.push(place);
        let event = self.entries[place].take().expect("an index in the queue has an entry");
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Span;

    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_insertion_however_they_were_added() {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let mut queue = EventQueue::new();
        queue.put(at(2), "put at 2");
        queue.put_in_order(at(1), "in order at 1");
        queue.put_in_order(at(2), "in order at 2");
        queue.put_in_order(at(1), "out of order at 1");
        queue.put(at(2), "put again at 2");
        let events: Vec<_> = std::iter::from_fn(|| queue.next()).map(|(_, event)| event).collect();
        let expected = ["in order at 1", "out of order at 1", "put at 2", "in order at 2", "put again at 2"];
        assert_eq!(events, expected);
    }
}
