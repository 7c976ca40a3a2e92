//! Decides when an executor without contact to the head stops its rank.
//!
//! Pure. The timer is stopped at first, because a rank comes from a connected daemon by order of the head. It
//! starts when the connection is lost, when the daemon says that the head cannot be reached, or when the
//! daemon's last word that it can is older than the lease term: a daemon that hangs says nothing. Only new
//! word that the head can be reached stops it. Starting a timer that runs does not restart it.
//!
//! What counts is when the head could be reached, not when this process heard of it: one that was suspended
//! hears of it late, and the head may have given its job to another node meanwhile.

use cohabit_types::{Span, Time};

use crate::interface::Lease;

/// How long an executor relies on the last word that the head can be reached. The daemon repeats it several
/// times in this time, so that an executor notices a daemon that hangs.
pub const LEASE_TERM: Span = Span::from_secs(10);

/// How much longer than its executor a watchdog waits before it kills: an executor that acts ends its rank,
/// and says how it ended. With the interval and the lease term it is less than what the head adds to the
/// orphan grace.
pub const WATCHDOG_MARGIN: Span = Span::from_secs(10);

/// How often a watchdog looks at the time that its executor keeps. That time is always later than this.
pub const WATCHDOG_INTERVAL: Span = Span::from_secs(5);

/// The time for which a rank may run without contact to the head.
#[derive(Debug, Clone, PartialEq)]
pub struct OrphanTimer {
    grace: Span,
    /// How long word that the head can be reached is valid. `None` for the first daemons, which did not
    /// repeat it: valid until revoked.
    term: Option<Span>,
    state: TimerState,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum TimerState {
    Stopped,
    /// Stopped until the lease expires at this time.
    StoppedUntil(Time),
    /// Runs, and expires at this time.
    Running(Time),
    /// Has expired.
    Expired,
}

impl OrphanTimer {
    /// A timer that is stopped because the head could be reached at this time.
    #[must_use]
    pub fn new(leased_at: Time, grace: Span, term: Option<Span>) -> OrphanTimer {
        let mut timer = OrphanTimer { grace, term, state: TimerState::Stopped };
        timer.set(leased_at, Lease::Held);
        timer
    }

    /// Notes whether the head could be reached at this time.
    pub fn set(&mut self, at: Time, lease: Lease) {
        match (lease, self.state) {
            (Lease::Held, _) => {
                self.state =
                    self.term.map_or(TimerState::Stopped, |term| TimerState::StoppedUntil(at + term));
            }
            (Lease::Orphaned, TimerState::StoppedUntil(expires_at)) => self.start(at.min(expires_at)),
            (Lease::Orphaned, TimerState::Stopped) => self.start(at),
            (Lease::Orphaned, TimerState::Running(_) | TimerState::Expired) => {}
        }
    }

    /// When to call [`OrphanTimer::expired_at`].
    #[must_use]
    pub const fn deadline(&self) -> Option<Time> {
        match self.state {
            TimerState::Stopped | TimerState::Expired => None,
            TimerState::StoppedUntil(at) | TimerState::Running(at) => Some(at),
        }
    }

    /// When the watchdog kills the rank, should nothing more be heard of the head. The executor stops the
    /// rank before, and gives it the grace of its job. `None`: not as far as this timer knows.
    #[must_use]
    pub fn kill_at(&self, stop_grace: Span) -> Option<Time> {
        let ends_at = match self.state {
            TimerState::Stopped | TimerState::Expired => return None,
            TimerState::StoppedUntil(at) => at + self.grace,
            TimerState::Running(at) => at,
        };
        Some(ends_at + stop_grace + WATCHDOG_MARGIN)
    }

    /// When the grace ended, if it has; told once.
    pub fn expired_at(&mut self, now: Time) -> Option<Time> {
        if let TimerState::StoppedUntil(at) = self.state
            && at <= now
        {
            self.start(at);
        }
        match self.state {
            TimerState::Running(at) if at <= now => {
                self.state = TimerState::Expired;
                Some(at)
            }
            TimerState::Stopped
            | TimerState::StoppedUntil(_)
            | TimerState::Running(_)
            | TimerState::Expired => None,
        }
    }

    /// Whether the head cannot be reached, as far as the executor knows.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.state, TimerState::Running(_) | TimerState::Expired)
    }

    fn start(&mut self, at: Time) {
        self.state = TimerState::Running(at + self.grace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Span = Span::from_secs(10);
    const TERM: Span = Span::from_secs(3);

    fn at(secs: u64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    #[test]
    fn it_runs_from_the_first_loss_until_the_head_can_be_reached() {
        let mut timer = OrphanTimer::new(at(0), GRACE, None);
        assert_eq!((timer.deadline(), timer.kill_at(GRACE)), (None, None));
        timer.set(at(0), Lease::Orphaned);
        timer.set(at(1), Lease::Orphaned);
        assert_eq!(timer.deadline(), Some(at(10)));
        timer.set(at(2), Lease::Held);
        assert_eq!(timer.deadline(), None);
        timer.set(at(3), Lease::Orphaned);
        assert_eq!(timer.deadline(), Some(at(13)));
        assert_eq!(timer.expired_at(at(12)), None);
        assert_eq!(timer.expired_at(at(14)), Some(at(13)), "the grace has ended");
        assert_eq!(timer.expired_at(at(15)), None, "once");
        timer.set(at(16), Lease::Orphaned);
        assert_eq!((timer.deadline(), timer.is_running()), (None, true), "the head is still far");
        timer.set(at(17), Lease::Held);
        assert!(!timer.is_running());
    }

    #[test]
    fn it_starts_when_the_lease_is_not_renewed() {
        let mut timer = OrphanTimer::new(at(0), GRACE, Some(TERM));
        timer.set(at(2), Lease::Held);
        assert_eq!((timer.deadline(), timer.kill_at(Span::ZERO)), (Some(at(5)), Some(at(25))));
        assert!(timer.expired_at(at(5)).is_none() && timer.is_running());
        assert_eq!((timer.deadline(), timer.kill_at(GRACE)), (Some(at(15)), Some(at(35))));
        timer.set(at(6), Lease::Held);
        assert!(!timer.is_running());
    }

    #[test]
    fn what_is_heard_late_counts_from_when_it_was_true() {
        let mut timer = OrphanTimer::new(at(0), GRACE, Some(TERM));
        // Suspended until second 60, it reads what its daemon said at second 2, and that the daemon is gone.
        timer.set(at(2), Lease::Held);
        timer.set(at(60), Lease::Orphaned);
        assert_eq!(timer.expired_at(at(60)), Some(at(15)));
        // The same without the end of the connection.
        let mut timer = OrphanTimer::new(at(0), GRACE, Some(TERM));
        timer.set(at(2), Lease::Held);
        assert_eq!(timer.expired_at(at(60)), Some(at(15)));
    }

    #[test]
    fn an_endless_grace_never_ends() {
        let mut timer = OrphanTimer::new(at(0), Span::from_micros(u64::MAX), None);
        timer.set(at(0), Lease::Orphaned);
        assert_eq!(timer.expired_at(Time::NEVER - Span::from_secs(1)), None);
    }
}
