//! The limit on restarts and the delay before each one.
//!
//! Pure arithmetic over instants: nothing here sleeps or reads the clock.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How often, and how fast, a failing actor is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestartPolicy {
    /// The number of restarts allowed within the window; the next failure ends the system.
    pub(crate) limit: u32,
    /// The span over which restarts are counted.
    pub(crate) window: Duration,
    /// The delay before the first restart within the window; each further one doubles it.
    pub(crate) first_delay: Duration,
    /// The cap on the delay.
    pub(crate) max_delay: Duration,
}

impl Default for RestartPolicy {
    /// Five restarts within a minute, after 0.1 s, 0.2 s, 0.4 s, 0.8 s and 1.6 s.
    fn default() -> Self {
        Self {
            limit: 5,
            window: Duration::from_secs(60),
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(10),
        }
    }
}

/// The recent restarts of one actor.
#[derive(Debug)]
pub(crate) struct RestartHistory {
    policy: RestartPolicy,
    recent: VecDeque<Instant>,
}

impl RestartHistory {
    pub(crate) fn new(policy: RestartPolicy) -> Self {
        Self { policy, recent: VecDeque::new() }
    }

    /// The delay before the restart after a failure at `now`; `None` past the limit.
    pub(crate) fn next_delay(&mut self, now: Instant) -> Option<Duration> {
        let window = self.policy.window;
        self.recent.retain(|restart| now.duration_since(*restart) < window);
        if self.count() >= self.policy.limit {
            return None;
        }
        let factor = 2_u32.saturating_pow(self.count());
        let delay = self.policy.first_delay.saturating_mul(factor).min(self.policy.max_delay);
        self.recent.push_back(now + delay);
        Some(delay)
    }

    /// The number of restarts within the window.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.recent.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn window(&self) -> Duration {
        self.policy.window
    }
}
