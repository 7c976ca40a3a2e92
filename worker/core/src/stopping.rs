//! How a running rank is stopped: warning signal, SIGTERM, grace, SIGKILL, and SIGKILL again until it has
//! ended. Its executor sends these signals; if that does not end the rank, the worker daemon kills the rank
//! and its executor.
//!
//! A stop begins with an order or with the time limit. The warning of a time limit comes so early that
//! SIGTERM falls on the limit. Once begun, a stop neither restarts nor takes longer, whatever else is
//! ordered; it becomes shorter if the rank's GPU, or other ranks on it, cannot wait, and SIGKILL comes at
//! once if its job is cancelled by force. A stop survives the worker daemon: the rank's executor keeps its
//! state, takes a step that no daemon takes in time, and the next daemon continues it.

use cohabit_types::{Signal, Span, Stop, StopReason, Time};

use crate::interface::{SignalTarget, StopStep, Stopping};

/// How long SIGKILL may take before it is sent again.
pub(crate) const KILL_INTERVAL: Span = Span::from_secs(10);

/// How long after the first SIGKILL the executor of a rank may take to write down that the rank has ended: it
/// may first have to remove MPS clients from their server, and to wait for the disk.
const EXECUTOR_TIMEOUT: Span = Span::from_secs(30);

/// How much later than due an executor takes a step that no daemon has taken: a daemon that lives is never so
/// late.
const OVERDUE: Span = Span::from_secs(2);

/// The longest time from SIGTERM to SIGKILL in an urgent stop.
const URGENT_GRACE: Span = Span::from_secs(10);

/// The longest grace, and the longest warning, of a rank that does nothing.
const IDLE_GRACE: Span = Span::from_secs(120);

/// What is done to a running rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAction {
    /// Its executor sends this signal to these processes.
    Signal(Signal, SignalTarget),
    /// It is killed, and its executor with it.
    Kill,
}

/// The stop of one running rank.
#[derive(Debug, Clone, PartialEq)]
pub struct StopSequence {
    terms: Stop,
    limit_at: Option<Time>,
    stopping: Option<Stopping>,
    /// When it was first sent SIGKILL.
    killed_at: Option<Time>,
}

impl StopSequence {
    /// `stopping` is the state of a stop that an earlier worker daemon began.
    #[must_use]
    pub const fn new(terms: Stop, limit_at: Option<Time>, stopping: Option<Stopping>) -> StopSequence {
        StopSequence { terms, limit_at, stopping, killed_at: None }
    }

    /// How far the stop has got, if it has begun.
    #[must_use]
    pub const fn stopping(&self) -> Option<Stopping> {
        self.stopping
    }

    /// When the next step is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match &self.stopping {
            Some(stopping) => Some(stopping.due_at),
            None => self.limit_at.map(|limit| limit - self.terms.warning.map_or(Span::ZERO, |w| w.before)),
        }
    }

    /// When the executor of the rank takes the next step, unless a daemon has.
    #[must_use]
    pub fn overdue_at(&self) -> Option<Time> {
        self.deadline().map(|due_at| due_at + OVERDUE)
    }

    /// Begins the stop of a rank whose orphan grace ended at this time: SIGTERM follows at once, and SIGKILL
    /// when the grace of the job would be over, had it begun then. The first reason stays.
    pub fn begin_orphaned(&mut self, expired_at: Time) -> Stopping {
        let why = self.stopping.map_or(StopReason::Orphaned, |stopping| stopping.why);
        let stopping = Stopping { why, next: StopStep::Kill, due_at: expired_at + self.terms.grace };
        self.stopping = Some(stopping);
        stopping
    }

    /// Notes how far somebody else has got with it.
    pub const fn note(&mut self, stopping: Stopping) {
        self.stopping = Some(stopping);
    }

    /// Begins the stop unless it has begun; an urgent reason shortens one that has. The first reason stays.
    pub(crate) fn begin(&mut self, now: Time, why: StopReason) -> Vec<StopAction> {
        match urgency(why) {
            Urgency::None => {}
            Urgency::BoundedGrace => self.bound_grace(),
            Urgency::ShortGrace => return self.shorten(now, why),
            Urgency::NoGrace => return self.kill(now, self.stopping.map_or(why, |stopping| stopping.why)),
        }
        match (&self.stopping, self.terms.warning) {
            (Some(_), _) => Vec::new(),
            (None, Some(warning)) => {
                let due_at = (now + warning.before).min(self.limit_at.unwrap_or(Time::NEVER)).max(now);
                self.stopping = Some(Stopping { why, next: StopStep::Terminate, due_at });
                vec![StopAction::Signal(warning.signal, SignalTarget::Group)]
            }
            (None, None) => self.terminate(now, why),
        }
    }

    /// A program that does nothing has little to save, and somebody waits.
    fn bound_grace(&mut self) {
        self.terms.grace = self.terms.grace.min(IDLE_GRACE);
        if let Some(warning) = &mut self.terms.warning {
            warning.before = warning.before.min(IDLE_GRACE);
        }
    }

    /// SIGTERM without a warning, and a short grace: the rank can hardly use its GPU any more.
    fn shorten(&mut self, now: Time, why: StopReason) -> Vec<StopAction> {
        self.terms.grace = self.terms.grace.min(URGENT_GRACE);
        match &mut self.stopping {
            None => self.terminate(now, why),
            Some(Stopping { why, next: StopStep::Terminate, .. }) => {
                let why = *why;
                self.terminate(now, why)
            }
            Some(Stopping { next: StopStep::Kill, due_at, .. }) => {
                *due_at = (*due_at).min(now + self.terms.grace);
                Vec::new()
            }
        }
    }

    /// Takes the step that is due, if there is one.
    pub fn advance(&mut self, now: Time) -> Vec<StopAction> {
        if self.deadline().is_none_or(|due_at| due_at > now) {
            return Vec::new();
        }
        match self.stopping.as_ref().map(|stopping| (stopping.why, stopping.next)) {
            None => self.begin(now, StopReason::TimeLimit),
            Some((why, StopStep::Terminate)) => self.terminate(now, why),
            Some((why, StopStep::Kill)) => self.kill(now, why),
        }
    }

    /// SIGCONT lets a suspended process handle the SIGTERM.
    fn terminate(&mut self, now: Time, why: StopReason) -> Vec<StopAction> {
        self.stopping = Some(Stopping { why, next: StopStep::Kill, due_at: now + self.terms.grace });
        [Signal::TERM, Signal::CONT].map(|signal| StopAction::Signal(signal, SignalTarget::Group)).into()
    }

    fn kill(&mut self, now: Time, why: StopReason) -> Vec<StopAction> {
        self.stopping = Some(Stopping { why, next: StopStep::Kill, due_at: now + KILL_INTERVAL });
        let killed_at = *self.killed_at.get_or_insert(now);
        match now.since(killed_at) < EXECUTOR_TIMEOUT {
            true => vec![StopAction::Signal(Signal::KILL, SignalTarget::Everything)],
            false => vec![StopAction::Kill],
        }
    }
}

/// How much of its grace a rank gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgency {
    /// All of it.
    None,
    /// All of it, up to a bound.
    BoundedGrace,
    /// Little: the GPU, or other ranks on it, cannot wait longer.
    ShortGrace,
    /// None: a user, or an admin, does not want to wait.
    NoGrace,
}

const fn urgency(why: StopReason) -> Urgency {
    match why {
        StopReason::Killed => Urgency::NoGrace,
        StopReason::MpsFault
        | StopReason::MpsFaultVictim
        | StopReason::GpuMemory
        | StopReason::DeviceLost => Urgency::ShortGrace,
        StopReason::Cancelled
        | StopReason::TimeLimit
        | StopReason::Requeued
        | StopReason::GangBroken
        | StopReason::Preempted
        | StopReason::Reclaimed
        | StopReason::Superseded
        | StopReason::Orphaned
        | StopReason::Unenforced
        | StopReason::ApplicationEnded
        | StopReason::Stalled => Urgency::None,
        StopReason::Idle => Urgency::BoundedGrace,
    }
}
