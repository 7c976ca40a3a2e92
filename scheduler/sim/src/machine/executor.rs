//! The executor of a simulated rank, and its watchdog: the production orphan timer and stop sequence in a
//! process that may be suspended or killed.
//!
//! While the head can be reached, a daemon repeats that all the time. That is not simulated: the timer of an
//! executor is set when the contact ends, or the executor cannot hear of it any more.

use cohabit_types::{Signal, Span, Time};
use cohabit_worker_core::{LEASE_TERM, Lease, OrphanTimer, RankStart, StopSequence, Stopping};

/// An executor.
#[derive(Debug, Clone)]
pub(crate) struct SimExecutor {
    pub(crate) state: ExecutorState,
    pub(super) timer: OrphanTimer,
    pub(crate) stop: StopSequence,
    /// The time until which the head could certainly be reached when the rank was assigned.
    pub(super) leased_at: Time,
    /// When its watchdog kills, as it has last stored.
    pub(super) kill_at: Option<Time>,
    /// Counts what it heard of the head; timers of an earlier count are out of date.
    pub(super) leases: u64,
    /// What its daemon has sent while it was suspended.
    pub(super) unread: Vec<ExecutorMessage>,
}

/// Whether an executor acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutorState {
    Acts,
    /// It was sent SIGSTOP. The processes of its rank go on.
    Suspended,
    /// It was sent SIGKILL. The processes of its rank go on until somebody ends them.
    Killed,
}

/// A command of the daemon.
#[derive(Debug, Clone, Copy)]
pub(super) enum ExecutorMessage {
    Lease(Lease, Time),
    Stopping(Stopping),
    Signal(Signal),
}

impl SimExecutor {
    /// All times are those of the machine's clock.
    pub(crate) fn new(start: &RankStart, leased_at: Time, orphan_grace: Span) -> SimExecutor {
        SimExecutor {
            state: ExecutorState::Acts,
            timer: OrphanTimer::new(leased_at, orphan_grace, Some(LEASE_TERM)),
            stop: StopSequence::new(start.spec.stop, None, None),
            leased_at,
            kill_at: None,
            leases: 0,
            unread: Vec::new(),
        }
    }

    /// Its rank runs from this time on. The watchdog hears until when, as far as is known.
    pub(super) fn begin(&mut self, start: &RankStart, started_at: Time) {
        self.kill_at = self.timer.kill_at(start.spec.stop.grace);
        let limit_at = start.spec.time_limit.map(|limit| started_at + limit);
        self.stop = StopSequence::new(start.spec.stop, limit_at, None);
    }

    pub(crate) fn acts(&self) -> bool {
        self.state == ExecutorState::Acts
    }

    /// Whether the head cannot be reached, as far as it knows.
    pub(super) const fn is_orphaned(&self) -> bool {
        self.timer.is_running()
    }

    /// What it knew is gone with it.
    pub(super) fn die(&mut self, start: &RankStart) {
        self.state = ExecutorState::Killed;
        self.stop = StopSequence::new(start.spec.stop, None, None);
        self.unread.clear();
    }

    /// Notes whether the head could be reached at this time, and tells the watchdog.
    pub(super) fn hear(&mut self, lease: Lease, at: Time, stop_grace: Span) {
        self.leases += 1;
        self.timer.set(at, lease);
        self.kill_at = self.timer.kill_at(stop_grace).or(self.kill_at);
    }
}
