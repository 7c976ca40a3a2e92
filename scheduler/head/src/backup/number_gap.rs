//! How far numbers jump when a backup is restored.
//!
//! The old head went on after the backup, and nobody knows how far. A fixed margin would be a guess, and the
//! same backup restored twice would give the same numbers twice. So the gap grows with the time since the
//! last event of the backup, faster than a head gives numbers out for long: at 1,000 jobs a second, ten users
//! at the default limit, it would write 100 GB a day. A burst is covered by what is added besides.

use cohabit_types::Span;

/// What is passed over. Numbers behind it were given out neither by the head whose backup it is nor by one
/// that was restored from the same backup before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberGap {
    /// Numbers of jobs.
    pub(super) jobs: u64,
    /// Numbers of attempts of each job.
    pub(super) attempts: u32,
    /// Numbers of the feed: a job leaves a few entries.
    pub(super) feed: u64,
}

const JOBS: u64 = 1_000_000;
const JOBS_PER_SECOND: u64 = 1_000;
const ATTEMPTS: u64 = 1_000;
const ATTEMPTS_PER_SECOND: u64 = 1;
const FEED_PER_JOB: u64 = 10;
/// More attempts would leave too few numbers for further restores. Reached after 3 years.
const MOST_ATTEMPTS: u64 = 100_000_000;

impl NumberGap {
    /// For a backup whose last event is so long ago.
    pub(super) fn after(elapsed: Span) -> NumberGap {
        let seconds = elapsed.as_micros().div_ceil(1_000_000);
        let jobs = JOBS.saturating_add(seconds.saturating_mul(JOBS_PER_SECOND));
        let attempts = ATTEMPTS.saturating_add(seconds.saturating_mul(ATTEMPTS_PER_SECOND));
        NumberGap {
            jobs,
            attempts: u32::try_from(attempts.min(MOST_ATTEMPTS)).unwrap_or(u32::MAX),
            feed: jobs.saturating_mul(FEED_PER_JOB),
        }
    }

    /// The number behind which jobs go on, where the highest one of the backup is this. A multiple of 1,000,
    /// which is easier to recognize.
    pub(super) fn last_job(&self, highest: u64) -> u64 {
        highest.saturating_add(self.jobs).div_ceil(1_000).saturating_mul(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_grows_faster_than_a_head_gives_numbers_out() {
        let at_once = NumberGap::after(Span::ZERO);
        assert_eq!(at_once, NumberGap { jobs: 1_000_000, attempts: 1_000, feed: 10_000_000 });
        assert_eq!((at_once.last_job(0), at_once.last_job(1_234)), (1_000_000, 1_002_000));
        let half_a_day = NumberGap::after(Span::from_secs(43_200));
        assert_eq!((half_a_day.last_job(12), half_a_day.attempts), (44_201_000, 44_200));
    }

    #[test]
    fn the_same_backup_restored_twice_gives_different_numbers() {
        let last = |secs| NumberGap::after(Span::from_secs(secs)).last_job(77);
        assert!((0..100).all(|secs| last(secs + 1) >= last(secs) + 1_000));
    }

    #[test]
    fn a_backup_of_any_age_is_restored() {
        let ancient = NumberGap::after(Span::from_micros(u64::MAX));
        assert_eq!(ancient.attempts, 100_000_000);
        assert!(ancient.last_job(1 << 40) < 1 << 60, "SQLite counts up to 2^63");
    }
}
