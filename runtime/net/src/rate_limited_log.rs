//! The log of rejected connections: one line each while they are few, a count while they are many, so that a
//! peer that connects in a loop does not fill the disk.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The period over which rejections are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// How many rejections of a period get a line each.
const MAX_PER_WINDOW: u32 = 20;

/// Logs rejected connections.
#[derive(Debug, Default)]
pub struct RateLimitedLog(Mutex<LogWindow>);

/// What was logged in the present period.
#[derive(Debug)]
struct LogWindow {
    since: Instant,
    logged: u32,
    suppressed: u32,
}

/// How much a rejection matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionClass {
    /// A Cohabit peer was refused: an operator may look for the reason.
    Refusal,
    /// Something else connected.
    Noise,
}

impl RateLimitedLog {
    /// Logs a rejection, unless there were many in this period.
    pub fn log_rejection(&self, weight: RejectionClass, address: SocketAddr, reason: &impl Display) {
        match (self.may_log(), weight) {
            (true, RejectionClass::Refusal) => tracing::warn!(%address, %reason, "refused a connection"),
            (true, RejectionClass::Noise) => {
                tracing::info!(%address, %reason, "rejected a connection that is not from Cohabit")
            }
            (false, _) => {}
        }
    }

    /// Logs that a handshake was dropped to make room, unless there was much to log in this period.
    pub(crate) fn log_overload(&self, handshakes: usize) {
        if self.may_log() {
            tracing::warn!(handshakes, "too many handshakes at once: dropped the slowest");
        }
    }

    /// Logs that the system did not hand over a connection, unless there was much to log in this period.
    pub fn log_accept_error(&self, error: &io::Error) {
        if self.may_log() {
            tracing::warn!(%error, "cannot accept a connection; trying again");
        }
    }

    fn may_log(&self) -> bool {
        let (may_log, suppressed) =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).next(Instant::now());
        if suppressed > 0 {
            tracing::warn!(
                connections = suppressed,
                "more connections failed that are not logged one by one"
            );
        }
        may_log
    }
}

impl LogWindow {
    /// Whether the next rejection is logged, and how many unlogged ones before it are counted with it.
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
    fn only_the_first_events_are_logged_and_then_their_number() {
        let mut logged = LogWindow::default();
        let start = logged.since;
        let may_log = |logged: &mut LogWindow, at| logged.next(start + at);
        assert!((0..MAX_PER_WINDOW).all(|_| may_log(&mut logged, Duration::ZERO) == (true, 0)));
        assert!((0..1_000).all(|_| may_log(&mut logged, WINDOW / 2) == (false, 0)));
        assert_eq!(may_log(&mut logged, WINDOW), (true, 1_000));
        assert_eq!(may_log(&mut logged, WINDOW), (true, 0));
    }
}
