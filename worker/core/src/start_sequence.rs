//! A rank between the order and its first process.
//!
//! Its executor looks up the program, its working directory and its directory for checkpoints meanwhile:
//! paths that the user chooses, and that may take for ever. So a start has a deadline, a stop and the time
//! limit shorten it, and a rank whose executor has not started it then is killed with its executor.

use cohabit_types::{Span, StopReason, Time};

use crate::stopping::KILL_INTERVAL;

/// How long the start of a rank may take.
pub(crate) const START_TIMEOUT: Span = Span::from_secs(300);

/// How long the start of a rank may still take once the rank is to be stopped. None of its work is lost then,
/// so it needs no grace.
pub(crate) const STOPPED_START_TIMEOUT: Span = Span::from_secs(10);

/// The start of one rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StartSequence {
    /// Why it is stopped as soon as it runs.
    stop: Option<StopReason>,
    /// The end of its time limit, should it never run.
    limit_at: Option<Time>,
    /// When it is killed.
    kill_at: Time,
}

impl StartSequence {
    pub(crate) fn new(now: Time, time_limit: Option<Span>) -> StartSequence {
        let limit_at = time_limit.map(|limit| now + limit);
        StartSequence { stop: None, limit_at, kill_at: now + START_TIMEOUT }
    }

    /// Why the rank is stopped as soon as it runs, if it is.
    pub(crate) const fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// Orders a stop. The first reason stays, unless a user does not want to wait.
    pub(crate) fn begin_stop(&mut self, now: Time, why: StopReason) {
        if self.stop.is_none() {
            self.kill_at = self.kill_at.min(now + STOPPED_START_TIMEOUT);
        }
        if self.stop.is_none() || why == StopReason::Killed {
            self.stop = Some(why);
        }
    }

    /// When the next step is due.
    pub(crate) fn deadline(&self) -> Time {
        match (self.stop, self.limit_at) {
            (None, Some(limit_at)) => self.kill_at.min(limit_at),
            (Some(_), _) | (None, None) => self.kill_at,
        }
    }

    /// Takes the step that is due. Returns whether the rank is to be killed, which is repeated until it has
    /// ended.
    pub(crate) fn advance(&mut self, now: Time) -> bool {
        if self.limit_at.is_some_and(|limit_at| limit_at <= now) {
            self.begin_stop(now, StopReason::TimeLimit);
        }
        let is_due = self.kill_at <= now;
        if is_due {
            self.kill_at = now + KILL_INTERVAL;
        }
        is_due
    }
}
