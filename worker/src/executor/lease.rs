//! The clock of an executor that was left alone.
//!
//! Pure. A rank comes by an order of the head, from a daemon that is connected: so the clock stands still at
//! first. It runs from the loss of a connection, or from when the head could no longer be reached; only word
//! that the head can be reached stops it. Whatever starts it while it runs does not start it anew.

use std::time::Duration;

use cohabit_worker_core::Lease;
use tokio::time::Instant;

/// When patience ends, if it is being tried.
#[derive(Debug)]
pub(crate) struct OrphanClock {
    patience: Duration,
    runs_out_at: Option<Instant>,
}

impl OrphanClock {
    /// A clock that stands still.
    pub(crate) const fn new(patience: Duration) -> OrphanClock {
        OrphanClock { patience, runs_out_at: None }
    }

    /// Takes in whether the head can be reached.
    pub(crate) fn set(&mut self, now: Instant, lease: Lease) {
        match lease {
            Lease::Held => self.runs_out_at = None,
            Lease::Orphaned => self.start(now),
        }
    }

    pub(crate) fn runs_out_at(&self) -> Option<Instant> {
        self.runs_out_at
    }

    fn start(&mut self, now: Instant) {
        // A patience too long to be added to a time is one that never ends.
        self.runs_out_at = self.runs_out_at.or_else(|| now.checked_add(self.patience));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_runs_from_the_first_loss_and_only_the_head_stops_it() {
        let start = Instant::now();
        let mut clock = OrphanClock::new(10 * SECOND);
        assert_eq!(clock.runs_out_at(), None);
        clock.set(start, Lease::Orphaned);
        clock.set(start + SECOND, Lease::Orphaned);
        assert_eq!(clock.runs_out_at(), Some(start + 10 * SECOND));
        clock.set(start + 2 * SECOND, Lease::Held);
        assert_eq!(clock.runs_out_at(), None);
        clock.set(start + 3 * SECOND, Lease::Orphaned);
        assert_eq!(clock.runs_out_at(), Some(start + 13 * SECOND));
    }

    #[test]
    fn endless_patience_never_runs_out() {
        let mut clock = OrphanClock::new(Duration::MAX);
        clock.set(Instant::now(), Lease::Orphaned);
        assert_eq!(clock.runs_out_at(), None);
    }
}
