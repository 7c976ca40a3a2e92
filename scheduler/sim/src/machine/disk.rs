//! The disk of a machine: how long a write takes, and what a power cycle does to it.

use cohabit_types::{Span, Time};

/// What happens to the disk of a machine that goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// Everything that was flushed is still there.
    Kept,
    /// The machine is installed anew and joins as another node.
    Wiped,
}

/// How long the disk takes to write an outcome, and whether it is full.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskState {
    slow_until: Time,
    write: Span,
    full_until: Time,
}

impl DiskState {
    pub(super) const fn slow(&mut self, until: Time, write: Span) {
        (self.slow_until, self.write) = (until, write);
    }

    pub(super) const fn fill(&mut self, until: Time) {
        self.full_until = until;
    }

    /// Whether the disk refuses new files at this time.
    pub(super) fn is_full(self, now: Time) -> bool {
        now < self.full_until
    }

    /// How long a write takes that begins now.
    pub(super) fn write_at(self, now: Time) -> Span {
        if now < self.slow_until { self.write } else { Span::ZERO }
    }
}
