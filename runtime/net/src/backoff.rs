//! Exponential backoff with jitter. Half of each delay is fixed and half is random, so that workers that lost
//! their head do not all return at once.

use std::time::Duration;

use rand::RngExt;

/// Delays that double from the first up to the longest, with jitter.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Default for Backoff {
    /// Delays from a tenth of a second to ten seconds.
    fn default() -> Backoff {
        Backoff::new(Duration::from_millis(100), Duration::from_secs(10))
    }
}

impl Backoff {
    /// Delays of at most `first`, then twice that, up to `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest, next: first.min(longest) }
    }

    /// The next delay.
    pub fn next_delay(&mut self) -> Duration {
        let full = self.next;
        self.next = full.saturating_mul(2).min(self.longest);
        full.mul_f64(rand::rng().random_range(0.5..=1.0))
    }

    /// Waits for the next delay.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }

    /// Begins with the first delay again, after a success.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_a_success_starts_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        for full in [100, 200, 350, 350] {
            let (full, delay) = (Duration::from_millis(full), backoff.next_delay());
            assert!(delay >= full / 2 && delay <= full, "{delay:?} of {full:?}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(100));
    }

    #[test]
    fn two_that_fail_together_do_not_return_together() {
        let delays = || Backoff::default().next_delay();
        assert!((0..20).any(|_| delays() != delays()));
    }
}
