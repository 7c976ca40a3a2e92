//! How fast users submit and change jobs: a token bucket for each user who did lately.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A user may save up this many seconds, so that a script's loop does not fail.
const BURST: Duration = Duration::from_secs(10);

/// More users than this are not remembered without need.
const MOST_USERS: usize = 1_024;

/// What is left to each user.
#[derive(Debug, Default)]
pub(super) struct UserRates(BTreeMap<String, Bucket>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Negative after one request that cost more than a full bucket has.
    left: f64,
    at: Instant,
}

impl UserRates {
    /// Takes a request of this user that costs so much, if so much a second leaves it. A full bucket is
    /// enough for any request, or it could never be made.
    pub(super) fn take(&mut self, user: &str, cost: u64, per_second: u64, now: Instant) -> bool {
        let most = per_second as f64 * BURST.as_secs_f64();
        if self.0.len() > MOST_USERS {
            self.0.retain(|_, bucket| bucket.filled(per_second, now) < most);
        }
        let bucket = self.0.entry(user.to_owned()).or_insert(Bucket { left: most, at: now });
        *bucket = Bucket { left: bucket.filled(per_second, now).min(most), at: now };
        let cost = cost as f64;
        let is_left = bucket.left >= cost.min(most);
        if is_left {
            bucket.left -= cost;
        }
        is_left
    }
}

impl Bucket {
    fn filled(&self, per_second: u64, now: Instant) -> f64 {
        self.left + per_second as f64 * now.saturating_duration_since(self.at).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_burst_then_the_rate_and_others_have_their_own() {
        let (mut rates, start) = (UserRates::default(), Instant::now());
        let taken = |rates: &mut UserRates, user, after| {
            (0..1_000).filter(|_| rates.take(user, 1, 5, start + Duration::from_secs(after))).count()
        };
        assert_eq!(taken(&mut rates, "eve", 0), 50);
        assert_eq!(taken(&mut rates, "ada", 0), 50);
        assert_eq!(taken(&mut rates, "eve", 2), 10);
        assert_eq!(taken(&mut rates, "eve", 10_000), 50, "no more than a burst is saved up");
    }

    #[test]
    fn a_request_beyond_the_burst_is_taken_and_paid_for() {
        let (mut rates, start) = (UserRates::default(), Instant::now());
        let mut take = |cost, after| rates.take("eve", cost, 5, start + Duration::from_secs(after));
        assert!(take(100, 0), "twice the burst");
        assert!(!take(1, 9));
        assert!(take(1, 11));
    }

    #[test]
    fn users_with_a_full_burst_are_forgotten() {
        let (mut rates, start) = (UserRates::default(), Instant::now());
        for user in 0..=MOST_USERS {
            assert!(rates.take(&user.to_string(), 1, 1, start));
        }
        assert!(rates.take("late", 1, 1, start + Duration::from_secs(60)));
        assert_eq!(rates.0.len(), 1);
    }
}
