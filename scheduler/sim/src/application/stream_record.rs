//! The record of one stream at its reader, written down outside of the cores, and the checks on it.

use super::task_ledger::FoundViolation;
use super::task_plan::TaskPlan;

/// Most items of a stream that may be with its reader and unread.
const WINDOW: u64 = 8;

/// How far a stream has come.
#[derive(Debug, Default)]
pub(super) struct StreamRecord {
    /// Items that have come to the reader's queue.
    arrived: u64,
    /// Items that the reader has taken from it.
    read: u64,
}

impl StreamRecord {
    /// An item has come to the reader's queue.
    pub(super) fn arrives(&mut self, plan: &TaskPlan, number: u64, value: u64) -> FoundViolation {
        self.arrived += 1;
        let (place, items, unread) = (self.arrived, plan.items().unwrap_or(0), self.arrived - self.read);
        if number != place {
            Some(format!("item {number} comes as item {place}"))
        } else if number > items {
            Some(format!("item {number} comes of {items}"))
        } else if value != plan.item(number) {
            Some(format!("item {number} is {value} and not {}", plan.item(number)))
        } else {
            (unread > WINDOW).then(|| format!("{unread} items are unread"))
        }
    }

    /// The reader takes an item.
    pub(super) fn reads(&mut self, plan: &TaskPlan, number: u64, value: u64) -> FoundViolation {
        self.read += 1;
        let place = self.read;
        let is_right = number == place && value == plan.item(number);
        (!is_right).then(|| format!("item {number} with value {value} is read as item {place}"))
    }

    /// Whether all items have come.
    pub(super) const fn has_all(&self, items: u64) -> bool {
        self.arrived == items
    }

    /// Whether the reader has taken all that has come.
    pub(super) const fn is_read(&self) -> bool {
        self.read == self.arrived
    }
}
