//! Waiting for what other processes do, up to a deadline.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first pause between two looks; each is twice as long as the one before.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// No pause is longer.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The end of somebody's patience.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    pub(super) fn after(patience: Duration) -> Deadline {
        Deadline(Instant::now() + patience)
    }

    /// This one, or the end of this time from now if that comes sooner.
    pub(super) fn within(self, limit: Duration) -> Deadline {
        Deadline(self.0.min(Instant::now() + limit))
    }

    pub(super) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Looks until there is something to be seen, at least once; nothing if there was none in time.
    pub(super) fn wait<T>(self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let mut pause = MIN_PAUSE;
        loop {
            let seen = look();
            let left = self.left();
            if seen.is_some() || left.is_zero() {
                return seen;
            }
            sleep(pause.min(left));
            pause = MAX_PAUSE.min(pause * 2);
        }
    }
}
