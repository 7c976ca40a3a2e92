//! What the clock on a machine's wall shows: somebody may set it, and it tells the truth about nothing.
//!
//! Daemon and executors stamp with it whatever they tell; how long things take does not depend on it.

use cohabit_proto::{Span, Time};

/// A clock that is off.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WallClock {
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
    /// What it shows; the epoch, where it would show less.
    pub(crate) fn read(self, now: Time) -> Time {
        now + self.ahead - self.behind
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Ahead(span) => self.ahead = self.ahead + span,
            Step::Back(span) => self.behind = self.behind + span,
        }
    }
}
