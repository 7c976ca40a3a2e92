//! A machine's disk: how long it takes to write, and what becomes of it with the machine.

use cohabit_types::{Span, Time};

/// What became of a machine's disk while it was down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// All is still there that was flushed.
    Kept,
    /// The machine was set up anew, and is another node now.
    Wiped,
}

/// How long the disk takes for an outcome, and whether there is room on it.
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

    /// Whether nothing new can be written.
    pub(super) fn is_full(self, now: Time) -> bool {
        now < self.full_until
    }

    /// How long it takes for one that is written now.
    pub(super) fn write_at(self, now: Time) -> Span {
        if now < self.slow_until { self.write } else { Span::ZERO }
    }
}
