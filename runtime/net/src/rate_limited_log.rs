//! What is logged of connections that come to nothing: each by itself while they are few, their number while
//! they are many. Whoever dials often must not fill the disk.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// In this time ...
const WINDOW: Duration = Duration::from_secs(10);
/// ... so many are told of one by one.
const MAX_PER_WINDOW: u32 = 20;

/// Tells of trouble with peers.
#[derive(Default)]
pub(crate) struct RateLimitedLog(Mutex<LogWindow>);

/// What was told in the present while.
struct LogWindow {
    since: Instant,
    logged: u32,
    suppressed: u32,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RejectionClass {
    /// Somebody with a client of ours was refused: a person may want to know why.
    Refusal,
    /// Something else dialled.
    Noise,
}

impl RateLimitedLog {
    /// Tells of one, unless there were many just now.
    pub(crate) fn log_rejection(&self, weight: RejectionClass, address: SocketAddr, reason: &impl Display) {
        match (self.may_log(), weight) {
            (true, RejectionClass::Refusal) => tracing::warn!(%address, %reason, "refused a connection"),
            (true, RejectionClass::Noise) => tracing::info!(%address, %reason, "turned a connection away"),
            (false, _) => {}
        }
    }

    /// Tells that somebody made room for others, unless there was much to tell just now.
    pub(crate) fn log_overload(&self, greetings: usize) {
        if self.may_log() {
            tracing::warn!(greetings, "more dial than are greeted at once: who has taken longest makes room");
        }
    }

    /// Tells that the system did not hand over a connection, unless there was much to tell just now.
    pub(crate) fn log_accept_error(&self, error: &io::Error) {
        if self.may_log() {
            tracing::warn!(%error, "the system did not hand over a connection; it is asked again");
        }
    }

    fn may_log(&self) -> bool {
        let (may_log, suppressed) =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).next(Instant::now());
        if suppressed > 0 {
            tracing::warn!(connections = suppressed, "so many more came to nothing");
        }
        may_log
    }
}

impl LogWindow {
    /// Whether the next is told of, and how many were not before it that have to be told of now.
    fn next(&mut self, now: Instant) -> (bool, u32) {
        let suppressed = if now.duration_since(self.since) < WINDOW {
            0
        } else {
            let suppressed = self.suppressed;
            *self = LogWindow { since: now, logged: 0, suppressed: 0 };
            suppressed
        };
        let may_log = self.logged < MAX_PER_WINDOW;
        self.logged += u32::from(may_log);
        self.suppressed += u32::from(!may_log);
        (may_log, suppressed)
    }
}

impl Default for LogWindow {
    fn default() -> LogWindow {
        LogWindow { since: Instant::now(), logged: 0, suppressed: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_only_the_first_are_told_and_then_how_many_there_were() {
        let mut logged = LogWindow::default();
        let start = logged.since;
        let may_log = |logged: &mut LogWindow, at| logged.next(start + at);
        assert!((0..MAX_PER_WINDOW).all(|_| may_log(&mut logged, Duration::ZERO) == (true, 0)));
        assert!((0..1_000).all(|_| may_log(&mut logged, WINDOW / 2) == (false, 0)));
        assert_eq!(may_log(&mut logged, WINDOW), (true, 1_000));
        assert_eq!(may_log(&mut logged, WINDOW), (true, 0));
    }
}
