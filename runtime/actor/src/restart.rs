//! The limit on restarts and the back-off between them, as plain arithmetic over instants.
//!
//! It never sleeps and never reads the clock: the keeper of an actor does both.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How often, and how fast, a failing actor is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// So many restarts are allowed within the window; the next failure escalates.
    pub limit: u32,
    /// The span over which restarts are counted. An older restart is forgotten, by the back-off too.
    pub window: Duration,
    /// The delay before the first restart within the window; each further one doubles it.
    pub first_delay: Duration,
    /// The cap on the delay.
    pub max_delay: Duration,
}

impl RestartPolicy {
    /// No restart: the first failure escalates.
    pub const NEVER: Self =
        Self { limit: 0, window: Duration::ZERO, first_delay: Duration::ZERO, max_delay: Duration::ZERO };
}

impl Default for RestartPolicy {
    /// Five restarts within a minute, after 0.1 s, 0.2 s, 0.4 s .. and 10 s at most.
    fn default() -> Self {
        Self {
            limit: 5,
            window: Duration::from_secs(60),
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(10),
        }
    }
}

/// The restarts that one actor had.
#[derive(Debug)]
pub(crate) struct RestartHistory {
    allowed: RestartPolicy,
    recent: VecDeque<Instant>,
}

impl RestartHistory {
    pub(crate) fn new(allowed: RestartPolicy) -> Self {
        Self { allowed, recent: VecDeque::new() }
    }

    /// The delay before the restart after a failure at `now`; `None` past the limit.
    pub(crate) fn next_delay(&mut self, now: Instant) -> Option<Duration> {
        let window = self.allowed.window;
        self.recent.retain(|restart| now.duration_since(*restart) < window);
        if self.count() >= self.allowed.limit {
            return None;
        }
        let factor = 2_u32.saturating_pow(self.count());
        let delay = self.allowed.first_delay.saturating_mul(factor).min(self.allowed.max_delay);
        self.recent.push_back(now + delay);
        Some(delay)
    }

    /// How many restarts are within the window.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.recent.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn window(&self) -> Duration {
        self.allowed.window
    }
}
