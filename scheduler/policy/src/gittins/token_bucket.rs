//! Device time that may be spent on something: it fills at a constant rate up to a most, and is spent by
//! whatever holds devices.

use cohabit_types::Time;

/// Device-seconds that may be spent.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenBucket {
    level: f64,
    at: Option<Time>,
}

impl TokenBucket {
    /// Fills and spends up to now: `rate` and `holders` are numbers of devices, `most` is in seconds of
    /// `rate`.
    pub(super) fn advance(&mut self, now: Time, rate: f64, most: f64, holders: f64) {
        let passed = self.at.map_or(0.0, |at| now.since(at).as_secs_f64());
        self.at = Some(now);
        self.level = (self.level + (rate - holders) * passed).min(rate * most);
    }

    /// Whether more is left than these device-seconds.
    pub(super) fn has_more_than(&self, committed: f64) -> bool {
        self.level > committed
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Span;

    use super::*;

    #[test]
    fn it_fills_at_its_rate_up_to_its_most_and_is_spent_by_holders() {
        let at = |seconds| Time::EPOCH + Span::from_secs(seconds);
        let mut bucket = TokenBucket::default();
        bucket.advance(at(100), 2.0, 50.0, 0.0);
        assert!(!bucket.has_more_than(0.0), "nothing is known of the time before");
        bucket.advance(at(110), 2.0, 50.0, 0.0);
        assert_eq!(bucket.level, 20.0);
        bucket.advance(at(120), 2.0, 50.0, 5.0);
        assert!(!bucket.has_more_than(0.0), "{}", bucket.level);
        bucket.advance(at(1_000), 2.0, 50.0, 0.0);
        assert_eq!(bucket.level, 100.0);
    }
}
