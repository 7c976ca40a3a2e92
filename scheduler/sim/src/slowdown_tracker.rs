//! Measures how long a process was slowed by others, and for how long by more than the bound.

use cohabit_types::{Span, Time};

/// Tracks the slowdown of one process from its start on.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct SlowdownTracker {
    /// Since when the present slowdown holds, and whether it is above the bound; `None` while the process
    /// does not run.
    present: Option<(Time, SlowdownLevel)>,
    past: SharedRunTime,
}

/// Whether a slowdown is above the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlowdownLevel {
    WithinBound,
    OverBound,
}

/// Run time of processes that were allowed to share a device.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedRunTime {
    /// All of it.
    pub(crate) ran: Span,
    /// The part in which they were slowed by more than the bound.
    pub(crate) over_bound: Span,
}

impl SlowdownTracker {
    /// Records that the process is slowed by this factor from now on.
    pub(crate) fn record(&mut self, now: Time, slowdown: f64, bound: f64) {
        self.past = self.total_at(now);
        self.present =
            Some((now, if slowdown > bound { SlowdownLevel::OverBound } else { SlowdownLevel::WithinBound }));
    }

    /// The run time up to this moment.
    pub(crate) fn total_at(&self, now: Time) -> SharedRunTime {
        let Some((since, level)) = self.present else { return self.past };
        let ran = now.since(since);
        let over_bound = match level {
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
