//! Polls other processes up to a deadline.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first pause between two polls. Each pause is twice as long as the one before.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two polls.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The time at which waiting ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    pub(super) fn after(timeout: Duration) -> Deadline {
        Deadline(Instant::now() + timeout)
    }

    /// This deadline, or `limit` from now if that is sooner.
    pub(super) fn within(self, limit: Duration) -> Deadline {
        Deadline(self.0.min(Instant::now() + limit))
    }

    pub(super) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Polls, at least once, until there is a result; `None` at the deadline.
    pub(super) fn wait<T>(self, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
        let mut pause = MIN_PAUSE;
        loop {
            let found = poll();
            let left = self.left();
            if found.is_some() || left.is_zero() {
                return found;
            }
            sleep(pause.min(left));
            pause = MAX_PAUSE.min(pause * 2);
        }
    }
}
