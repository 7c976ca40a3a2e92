//! What the clock on a machine's wall shows: somebody may set it, and it tells the truth about nothing.
//!
//! Daemon and executors go by what it showed when the machine was started, and by what has passed since.

use cohabit_proto::{Span, Time};

/// A clock that is off.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WallClock {
    shows: Offset,
    showed_at_start: Offset,
}

/// How far it is off.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Offset {
    ahead: Span,
    behind: Span,
}

/// Somebody sets a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It shows so much more than before.
    Ahead(Span),
    /// It shows so much less than before.
    Back(Span),
}

impl WallClock {
    /// What time it is for those on this machine; the epoch, where it would be earlier.
    pub(crate) fn read(self, now: Time) -> Time {
        now + self.showed_at_start.ahead - self.showed_at_start.behind
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Ahead(span) => self.shows.ahead = self.shows.ahead + span,
            Step::Back(span) => self.shows.behind = self.shows.behind + span,
        }
    }

    /// The machine is started anew.
    pub(super) const fn start(&mut self) {
        self.showed_at_start = self.shows;
    }
}
