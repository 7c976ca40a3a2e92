//! The clock of an executor that was left alone.
//!
//! Pure. A rank comes by an order of the head, from a daemon that is connected: so the clock stands still at
//! first. It runs from the loss of a connection, from when the head could no longer be reached, or from when
//! word that it can has become stale, for a daemon that hangs says nothing at all. Only such word stops it.
//! Whatever starts it while it runs does not start it anew.

use std::time::Duration;

use cohabit_worker_core::Lease;
use tokio::time::Instant;

/// When patience ends, if it is being tried.
#[derive(Debug)]
pub(crate) struct OrphanTimer {
    patience: Duration,
    /// How long word that the head can be reached is good for. Daemons that do not repeat it say nothing of
    /// it: then it is good until they take it back.
    term: Option<Duration>,
    state: TimerState,
}

#[derive(Debug, Clone, Copy)]
enum TimerState {
    Still,
    /// Still, until word is stale.
    StillUntil(Instant),
    /// Patience ends then.
    Runs(Instant),
}

impl OrphanTimer {
    /// A clock that stands still.
    pub(crate) fn new(now: Instant, patience: Duration, term: Option<Duration>) -> OrphanTimer {
        let mut clock = OrphanTimer { patience, term, state: TimerState::Still };
        clock.set(now, Lease::Held);
        clock
    }

    /// Takes in whether the head can be reached.
    pub(crate) fn set(&mut self, now: Instant, lease: Lease) {
        match lease {
            Lease::Held => {
                let stale_at = self.term.and_then(|term| now.checked_add(term));
                self.state = stale_at.map_or(TimerState::Still, TimerState::StillUntil);
            }
            Lease::Orphaned => self.start(now),
        }
    }

    /// When to ask whether patience has ended.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.state {
            TimerState::Still => None,
            TimerState::StillUntil(at) | TimerState::Runs(at) => Some(at),
        }
    }

    /// It rings: whether patience has ended, which it does once.
    pub(crate) fn has_expired(&mut self, now: Instant) -> bool {
        match self.state {
            TimerState::StillUntil(at) if at <= now => self.start(now),
            TimerState::Runs(at) if at <= now => {
                self.state = TimerState::Still;
                return true;
            }
            TimerState::Still | TimerState::StillUntil(_) | TimerState::Runs(_) => {}
        }
        false
    }

    pub(crate) const fn runs(&self) -> bool {
        matches!(self.state, TimerState::Runs(_))
    }

    fn start(&mut self, now: Instant) {
        if !self.runs() {
            // A patience too long to be added to a time is one that never ends.
            self.state = now.checked_add(self.patience).map_or(TimerState::Still, TimerState::Runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_runs_from_the_first_loss_and_only_the_head_stops_it() {
        let start = Instant::now();
        let mut clock = OrphanTimer::new(start, 10 * SECOND, None);
        assert_eq!(clock.deadline(), None);
        clock.set(start, Lease::Orphaned);
        clock.set(start + SECOND, Lease::Orphaned);
        assert_eq!(clock.deadline(), Some(start + 10 * SECOND));
        clock.set(start + 2 * SECOND, Lease::Held);
        assert_eq!(clock.deadline(), None);
        clock.set(start + 3 * SECOND, Lease::Orphaned);
        assert_eq!(clock.deadline(), Some(start + 13 * SECOND));
        assert!(!clock.has_expired(start + 12 * SECOND));
        assert!(clock.has_expired(start + 13 * SECOND), "patience ends");
        assert!(!clock.has_expired(start + 14 * SECOND), "once");
    }

    #[test]
    fn it_runs_when_word_of_the_head_is_not_repeated() {
        let start = Instant::now();
        let mut clock = OrphanTimer::new(start, 10 * SECOND, Some(3 * SECOND));
        clock.set(start + 2 * SECOND, Lease::Held);
        assert_eq!(clock.deadline(), Some(start + 5 * SECOND));
        assert!(!clock.has_expired(start + 5 * SECOND) && clock.runs());
        assert_eq!(clock.deadline(), Some(start + 15 * SECOND));
        clock.set(start + 6 * SECOND, Lease::Held);
        assert!(!clock.runs());
    }

    #[test]
    fn endless_patience_never_runs_out() {
        let mut clock = OrphanTimer::new(Instant::now(), Duration::MAX, None);
        clock.set(Instant::now(), Lease::Orphaned);
        assert_eq!(clock.deadline(), None);
    }
}
