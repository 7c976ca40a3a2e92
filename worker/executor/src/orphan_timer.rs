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
use cohabit_worker_core::Lease;

/// The time for which a rank may run without contact to the head.
#[derive(Debug)]
pub(crate) struct OrphanTimer {
    grace: Span,
    /// How long word that the head can be reached is valid. `None` for the first daemons, which did not
    /// repeat it: valid until revoked.
    term: Option<Span>,
    state: TimerState,
}

#[derive(Debug, Clone, Copy)]
enum TimerState {
    Stopped,
    /// Stopped until the lease expires at this time.
    StoppedUntil(Time),
    /// Runs, and expires at this time.
    Running(Time),
}

impl OrphanTimer {
    /// A timer that is stopped because the head could be reached at this time.
    pub(crate) fn new(leased_at: Time, grace: Span, term: Option<Span>) -> OrphanTimer {
        let mut timer = OrphanTimer { grace, term, state: TimerState::Stopped };
        timer.set(leased_at, Lease::Held);
        timer
    }

    /// Notes whether the head could be reached at this time.
    pub(crate) fn set(&mut self, at: Time, lease: Lease) {
        match (lease, self.state) {
            (Lease::Held, _) => {
                self.state =
                    self.term.map_or(TimerState::Stopped, |term| TimerState::StoppedUntil(at + term));
            }
            (Lease::Orphaned, TimerState::StoppedUntil(expires_at)) => self.start(at.min(expires_at)),
            (Lease::Orphaned, TimerState::Stopped) => self.start(at),
            (Lease::Orphaned, TimerState::Running(_)) => {}
        }
    }

    /// When to call [`OrphanTimer::expired_at`].
    pub(crate) const fn deadline(&self) -> Option<Time> {
        match self.state {
            TimerState::Stopped => None,
            TimerState::StoppedUntil(at) | TimerState::Running(at) => Some(at),
        }
    }

    /// When the grace ends, should nothing more be heard of the head. `None`: never.
    pub(crate) fn ends_at(&self) -> Option<Time> {
        match self.state {
            TimerState::Stopped => None,
            TimerState::StoppedUntil(at) => Some(at + self.grace),
            TimerState::Running(at) => Some(at),
        }
    }

    /// When the grace ended, if it has; told once.
    pub(crate) fn expired_at(&mut self, now: Time) -> Option<Time> {
        if let TimerState::StoppedUntil(at) = self.state
            && at <= now
        {
            self.start(at);
        }
        match self.state {
            TimerState::Running(at) if at <= now => {
                self.state = TimerState::Stopped;
                Some(at)
            }
            TimerState::Stopped | TimerState::StoppedUntil(_) | TimerState::Running(_) => None,
        }
    }

    pub(crate) const fn is_running(&self) -> bool {
        matches!(self.state, TimerState::Running(_))
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
        assert_eq!((timer.deadline(), timer.ends_at()), (None, None));
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
    }

    #[test]
    fn it_starts_when_the_lease_is_not_renewed() {
        let mut timer = OrphanTimer::new(at(0), GRACE, Some(TERM));
        timer.set(at(2), Lease::Held);
        assert_eq!((timer.deadline(), timer.ends_at()), (Some(at(5)), Some(at(15))));
        assert!(timer.expired_at(at(5)).is_none() && timer.is_running());
        assert_eq!((timer.deadline(), timer.ends_at()), (Some(at(15)), Some(at(15))));
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
