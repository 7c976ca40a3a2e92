//! A machine's disk: how long it takes to write, and what becomes of it with the machine.

use cohabit_proto::{Span, Time};

/// What became of a machine's disk while it was down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// All is still there that was flushed.
    Kept,
    /// The machine was set up anew, and is another node now.
    Wiped,
}

/// How long the disk takes for an outcome.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct DiskSpeed {
    slow_until: Time,
    write: Span,
}

impl DiskSpeed {
    pub(super) const fn slow(until: Time, write: Span) -> DiskSpeed {
        DiskSpeed { slow_until: until, write }
    }

    /// How long it takes for one that is written now.
    pub(super) fn write_at(self, now: Time) -> Span {
        if now < self.slow_until { self.write } else { Span::ZERO }
    }
}
