//! For how long a process was slowed by others, and for how long by too much.

use cohabit_types::{Span, Time};

/// One process, from its start on.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct SlowdownTracker {
    /// Its slowdown, since when, and whether that is too much; none while it does not run.
    present: Option<(Time, SlowdownLevel)>,
    past: SharedRunTime,
}

/// Whether a slowdown is above the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlowdownLevel {
    WithinBound,
    OverBound,
}

/// Time that processes ran which may have neighbours.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedRunTime {
    /// All of it.
    pub(crate) ran: Span,
    /// That in which they were slowed by more than the bound.
    pub(crate) over_bound: Span,
}

impl SlowdownTracker {
    /// From now on it is slowed like this.
    pub(crate) fn changes(&mut self, now: Time, slowdown: f64, bound: f64) {
        self.past = self.until(now);
        self.present =
            Some((now, if slowdown > bound { SlowdownLevel::OverBound } else { SlowdownLevel::WithinBound }));
    }

    /// Up to this moment.
    pub(crate) fn until(&self, now: Time) -> SharedRunTime {
        let Some((since, harm)) = self.present else { return self.past };
        let ran = now.since(since);
        let over_bound = match harm {
            SlowdownLevel::WithinBound => Span::ZERO,
            SlowdownLevel::OverBound => ran,
        };
        self.past + SharedRunTime { ran, over_bound }
    }
}

impl std::ops::Add for SharedRunTime {
    type Output = SharedRunTime;
    fn add(self, other: SharedRunTime) -> SharedRunTime {
        SharedRunTime { ran: self.ran + other.ran, over_bound: self.over_bound + other.over_bound }
    }
}

impl std::iter::Sum for SharedRunTime {
    fn sum<I: Iterator<Item = SharedRunTime>>(all: I) -> SharedRunTime {
        all.fold(SharedRunTime::default(), std::ops::Add::add)
    }
}
