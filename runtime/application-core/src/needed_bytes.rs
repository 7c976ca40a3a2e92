//! Where the stored objects are that a task needs.

use cohabit_types::Span;

use crate::ids::NodeNumber;
use crate::limits::TRANSFER_RATE;

/// The bytes of stored objects, by the nodes that have them.
#[derive(Debug, Default)]
pub(crate) struct NeededBytes {
    /// Few nodes, each once.
    homes: Vec<(NodeNumber, u64)>,
    total: u64,
}

impl NeededBytes {
    pub(crate) const fn is_empty(&self) -> bool {
        self.homes.is_empty()
    }

    /// How long it takes to bring to a node what it does not have.
    pub(crate) fn fetch_time(&self, node: NodeNumber) -> Span {
        let here = self.homes.iter().find(|(home, _)| *home == node).map_or(0, |(_, bytes)| *bytes);
        Span::from_micros((self.total - here) / TRANSFER_RATE)
    }

    /// How long it takes to bring all of them to a node that has none.
    pub(crate) const fn longest_fetch_time(&self) -> Span {
        Span::from_micros(self.total / TRANSFER_RATE)
    }

    pub(crate) fn add(&mut self, home: NodeNumber, bytes: u64) {
        // More than 2^64 bytes exist nowhere.
        self.total = self.total.saturating_add(bytes);
        match self.homes.iter_mut().find(|(node, _)| *node == home) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => self.homes.push((home, bytes)),
        }
    }
}
