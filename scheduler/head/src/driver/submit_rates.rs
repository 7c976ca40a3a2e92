//! How fast users submit: a token bucket for each user who did lately.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A user may save up this many seconds of submissions, so that a script's loop does not fail.
const BURST: Duration = Duration::from_secs(10);

/// More users than this are not remembered without need.
const MOST_USERS: usize = 1_024;

/// What is left to each user.
#[derive(Debug, Default)]
pub(super) struct SubmitRates(BTreeMap<String, Bucket>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl SubmitRates {
    /// Takes one submission of this user, if so many a second leave one.
    pub(super) fn take(&mut self, user: &str, per_second: u64, now: Instant) -> bool {
        let most = per_second as f64 * BURST.as_secs_f64();
        if self.0.len() > MOST_USERS {
            self.0.retain(|_, bucket| bucket.filled(per_second, now) < most);
        }
        let bucket = self.0.entry(user.to_owned()).or_insert(Bucket { left: most, at: now });
        *bucket = Bucket { left: bucket.filled(per_second, now).min(most), at: now };
        let is_left = bucket.left >= 1.0;
        if is_left {
            bucket.left -= 1.0;
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
        let (mut rates, start) = (SubmitRates::default(), Instant::now());
        let taken = |rates: &mut SubmitRates, user, after| {
            (0..1_000).filter(|_| rates.take(user, 5, start + Duration::from_secs(after))).count()
        };
        assert_eq!(taken(&mut rates, "eve", 0), 50);
        assert_eq!(taken(&mut rates, "ada", 0), 50);
        assert_eq!(taken(&mut rates, "eve", 2), 10);
        assert_eq!(taken(&mut rates, "eve", 10_000), 50, "no more than a burst is saved up");
    }

    #[test]
    fn users_with_a_full_burst_are_forgotten() {
        let (mut rates, start) = (SubmitRates::default(), Instant::now());
        for user in 0..=MOST_USERS {
            assert!(rates.take(&user.to_string(), 1, start));
        }
        assert!(rates.take("late", 1, start + Duration::from_secs(60)));
        assert_eq!(rates.0.len(), 1);
    }
}
