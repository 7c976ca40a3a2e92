//! Decides when an executor without contact to the head stops its rank.
//!
//! Pure. The timer is stopped at first, because a rank comes from a connected daemon by order of the head. It
//! starts when the connection is lost, when the daemon says that the head cannot be reached, or when the
//! daemon's last word that it can is older than the lease term: a daemon that hangs says nothing. Only new
//! word that the head can be reached stops it. Starting a timer that runs does not restart it.

use std::time::Duration;

use cohabit_worker_core::Lease;
use tokio::time::Instant;

/// The time for which a rank may run without contact to the head.
#[derive(Debug)]
pub(crate) struct OrphanTimer {
    grace: Duration,
    /// How long word that the head can be reached is valid. `None` for the first daemons, which did not
    /// repeat it: valid until revoked.
    term: Option<Duration>,
    state: TimerState,
}

#[derive(Debug, Clone, Copy)]
enum TimerState {
    Stopped,
    /// Stopped until the lease expires at this time.
    StoppedUntil(Instant),
    /// Runs, and expires at this time.
    Running(Instant),
}

impl OrphanTimer {
    /// A stopped timer.
    pub(crate) fn new(now: Instant, grace: Duration, term: Option<Duration>) -> OrphanTimer {
        let mut timer = OrphanTimer { grace, term, state: TimerState::Stopped };
        timer.set(now, Lease::Held);
        timer
    }

    /// Notes whether the head can be reached.
    pub(crate) fn set(&mut self, now: Instant, lease: Lease) {
        match lease {
            Lease::Held => {
                let expires_at = self.term.and_then(|term| now.checked_add(term));
                self.state = expires_at.map_or(TimerState::Stopped, TimerState::StoppedUntil);
            }
            Lease::Orphaned => self.start(now),
        }
    }

    /// When to call [`OrphanTimer::has_expired`].
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.state {
            TimerState::Stopped => None,
            TimerState::StoppedUntil(at) | TimerState::Running(at) => Some(at),
        }
    }

    /// Whether the grace has ended; true once.
    pub(crate) fn has_expired(&mut self, now: Instant) -> bool {
        match self.state {
            TimerState::StoppedUntil(at) if at <= now => self.start(now),
            TimerState::Running(at) if at <= now => {
                self.state = TimerState::Stopped;
                return true;
            }
            TimerState::Stopped | TimerState::StoppedUntil(_) | TimerState::Running(_) => {}
        }
        false
    }

    pub(crate) const fn is_running(&self) -> bool {
        matches!(self.state, TimerState::Running(_))
    }

    fn start(&mut self, now: Instant) {
        if !self.is_running() {
            // A grace too long to be added to a time never ends.
            self.state = now.checked_add(self.grace).map_or(TimerState::Stopped, TimerState::Running);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_runs_from_the_first_loss_until_the_head_can_be_reached() {
        let start = Instant::now();
        let mut timer = OrphanTimer::new(start, 10 * SECOND, None);
        assert_eq!(timer.deadline(), None);
        timer.set(start, Lease::Orphaned);
        timer.set(start + SECOND, Lease::Orphaned);
        assert_eq!(timer.deadline(), Some(start + 10 * SECOND));
        timer.set(start + 2 * SECOND, Lease::Held);
        assert_eq!(timer.deadline(), None);
        timer.set(start + 3 * SECOND, Lease::Orphaned);
        assert_eq!(timer.deadline(), Some(start + 13 * SECOND));
        assert!(!timer.has_expired(start + 12 * SECOND));
        assert!(timer.has_expired(start + 13 * SECOND), "the grace has ended");
        assert!(!timer.has_expired(start + 14 * SECOND), "once");
    }

    #[test]
    fn it_starts_when_the_lease_is_not_renewed() {
        let start = Instant::now();
        let mut timer = OrphanTimer::new(start, 10 * SECOND, Some(3 * SECOND));
        timer.set(start + 2 * SECOND, Lease::Held);
        assert_eq!(timer.deadline(), Some(start + 5 * SECOND));
        assert!(!timer.has_expired(start + 5 * SECOND) && timer.is_running());
        assert_eq!(timer.deadline(), Some(start + 15 * SECOND));
        timer.set(start + 6 * SECOND, Lease::Held);
        assert!(!timer.is_running());
    }

    #[test]
    fn an_endless_grace_never_ends() {
        let mut timer = OrphanTimer::new(Instant::now(), Duration::MAX, None);
        timer.set(Instant::now(), Lease::Orphaned);
        assert_eq!(timer.deadline(), None);
    }
}
