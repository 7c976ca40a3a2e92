//! Token buckets: how often each of many does something, on average, after a burst.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// More of them than this are not remembered without need.
const MOST_REMEMBERED: usize = 1_024;

/// What is left to each of those who did it lately.
#[derive(Debug)]
pub(crate) struct Rates<Key>(BTreeMap<Key, Bucket>);

impl<Key> Default for Rates<Key> {
    fn default() -> Rates<Key> {
        Rates(BTreeMap::new())
    }
}

/// How much a bucket gets, and how much it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BucketRate {
    pub(crate) per_second: f64,
    pub(crate) burst: f64,
}

/// What is left of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    /// Negative after one request that cost more than a full bucket has.
    left: f64,
    at: Instant,
}

/// The same for many tasks.
#[derive(Debug)]
pub(crate) struct SharedRates<Key>(Mutex<Rates<Key>>);

impl<Key> Default for SharedRates<Key> {
    fn default() -> SharedRates<Key> {
        SharedRates(Mutex::default())
    }
}

impl<Key: Ord> SharedRates<Key> {
    /// Takes so much, if it is left.
    pub(crate) fn take(&self, key: Key, cost: u64, rate: BucketRate, now: Instant) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(key, cost, rate, now)
    }
}

impl<Key: Ord> Rates<Key> {
    /// Takes so much, if it is left.
    pub(crate) fn take(&mut self, key: Key, cost: u64, rate: BucketRate, now: Instant) -> bool {
        if self.0.len() > MOST_REMEMBERED {
            self.0.retain(|_, bucket| bucket.filled(rate, now).left < rate.burst);
        }
        self.0.entry(key).or_insert_with(|| Bucket::full(rate, now)).take(cost, rate, now)
    }
}

impl BucketRate {
    /// So much a second. What ten seconds bring may be saved up, so that a script's loop does not fail.
    pub(crate) fn per_second(per_second: u64) -> BucketRate {
        let per_second = per_second as f64;
        BucketRate { per_second, burst: per_second * 10.0 }
    }

    /// So much a minute, all of it at once if need be.
    pub(crate) fn per_minute(per_minute: u32) -> BucketRate {
        let burst = f64::from(per_minute);
        BucketRate { per_second: burst / 60.0, burst }
    }
}

impl Bucket {
    pub(crate) const fn full(rate: BucketRate, now: Instant) -> Bucket {
        Bucket { left: rate.burst, at: now }
    }

    /// Takes so much, if it is left. A full bucket is enough for any request, or it could never be made.
    pub(crate) fn take(&mut self, cost: u64, rate: BucketRate, now: Instant) -> bool {
        let is_left = self.wait(cost, rate, now).is_zero();
        if is_left {
            self.left -= cost as f64;
        }
        is_left
    }

    /// How long it takes until so much is left.
    fn wait(&mut self, cost: u64, rate: BucketRate, now: Instant) -> Duration {
        *self = self.filled(rate, now);
        let missing = ((cost as f64).min(rate.burst) - self.left).max(0.0);
        Duration::try_from_secs_f64(missing / rate.per_second).unwrap_or(Duration::MAX)
    }

    /// Takes so much in any case, and says how long to wait until that is paid for.
    pub(crate) fn charge(&mut self, cost: u64, rate: BucketRate, now: Instant) -> Duration {
        *self = self.filled(rate, now);
        self.left -= cost as f64;
        Duration::try_from_secs_f64((-self.left).max(0.0) / rate.per_second).unwrap_or(Duration::MAX)
    }

    fn filled(self, rate: BucketRate, now: Instant) -> Bucket {
        let gained = rate.per_second * now.saturating_duration_since(self.at).as_secs_f64();
        Bucket { left: (self.left + gained).min(rate.burst), at: now }
    }
}

/// Waits until what was charged is paid for. A pause of nothing costs no millisecond, as a sleep of nothing
/// does: timers end with the next one.
pub(crate) async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: fn() -> BucketRate = || BucketRate::per_second(5);

    #[test]
    fn each_has_a_burst_then_the_rate() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let taken = |rates: &mut Rates<&str>, user, after| {
            (0..1_000).filter(|_| rates.take(user, 1, FIVE(), start + Duration::from_secs(after))).count()
        };
        assert_eq!(taken(&mut rates, "eve", 0), 50);
        assert_eq!(taken(&mut rates, "ada", 0), 50);
        assert_eq!(taken(&mut rates, "eve", 2), 10);
        assert_eq!(taken(&mut rates, "eve", 10_000), 50, "no more than a burst is saved up");
    }

    #[test]
    fn a_request_beyond_the_burst_is_taken_and_paid_for() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let mut take = |cost, after| rates.take("eve", cost, FIVE(), start + Duration::from_secs(after));
        assert!(take(100, 0), "twice the burst");
        assert!(!take(1, 9));
        assert!(take(1, 11));
    }

    #[test]
    fn a_wait_is_as_long_as_the_rest_takes() {
        let start = Instant::now();
        let mut bucket = Bucket::full(FIVE(), start);
        assert!(bucket.take(48, FIVE(), start));
        assert_eq!(bucket.wait(12, FIVE(), start), Duration::from_secs(2));
        assert_eq!(bucket.wait(2, FIVE(), start), Duration::ZERO);
    }

    #[test]
    fn what_is_charged_beyond_the_rest_is_waited_for() {
        let start = Instant::now();
        let mut bucket = Bucket::full(FIVE(), start);
        assert_eq!(bucket.charge(50, FIVE(), start), Duration::ZERO);
        assert_eq!(bucket.charge(10, FIVE(), start), Duration::from_secs(2));
        assert_eq!(bucket.charge(10, FIVE(), start + Duration::from_secs(1)), Duration::from_secs(3));
    }

    #[test]
    fn those_with_a_full_burst_are_forgotten() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        for user in 0..=MOST_REMEMBERED {
            assert!(rates.take(user, 1, FIVE(), start));
        }
        assert!(rates.take(1_000_000, 1, FIVE(), start + Duration::from_secs(60)));
        assert_eq!(rates.0.len(), 1);
    }
}
