//! The values of jobs that belong together, in the order in which they ended, and what was known of them at
//! any time.
//!
//! A query names a time and sees only what had ended by then. So a past job can be described with what was
//! known at its submission, however late it is learned from, and never with its own value.

use std::collections::VecDeque;

use cohabit_types::{Span, Time};

use crate::median::median;

/// The number of newest values in the median.
const MEDIAN_WINDOW: usize = 20;
/// The number of newest values in the short median.
const SHORT_MEDIAN_WINDOW: usize = 5;
/// The weight of the newest value in the exponential mean.
const SMOOTHING: f64 = 0.3;

/// The values of jobs that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Cohort {
    code: u32,
    /// Ordered by the time of the end.
    entries: VecDeque<Entry>,
}

/// An ended job, with the sums over it and all before it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    known_at: Time,
    value: f64,
    sum: f64,
    squares: f64,
    exponential_mean: f64,
    /// When the last submitted job was submitted, and its value.
    last_submitted: (Time, f64),
}

/// The statistics at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Statistics {
    /// The code of the cohort.
    pub(crate) code: u32,
    /// Number of ended jobs.
    pub(crate) count: u64,
    /// Value of the job that ended last.
    pub(crate) last: f64,
    /// Time since that end.
    pub(crate) since_last: Span,
    /// Value of the job that was submitted last, even if it is forgotten by now.
    pub(crate) last_submitted: f64,
    /// Time since that submission.
    pub(crate) since_last_submitted: Span,
    /// Mean of all values.
    pub(crate) mean: f64,
    /// Standard deviation of all values.
    pub(crate) deviation: f64,
    /// Mean in which each value weighs 0.7 times as much as the next; forgotten values fade from it.
    pub(crate) exponential_mean: f64,
    /// Median of the last 20 values.
    pub(crate) median: f64,
    /// The number of values in this median.
    pub(crate) recent: usize,
    /// Median of the last 5 values.
    pub(crate) short_median: f64,
    /// Range of the last 20 values.
    pub(crate) range: f64,
}

impl Cohort {
    /// An empty cohort with this code.
    pub(crate) fn new(code: u32) -> Cohort {
        Cohort { code, entries: VecDeque::new() }
    }

    /// Adds a job. One that ended before the newest counts as known no earlier than that.
    pub(crate) fn add(&mut self, submitted_at: Time, ended_at: Time, value: f64) {
        let first = Entry {
            known_at: ended_at,
            value,
            sum: value,
            squares: value * value,
            exponential_mean: value,
            last_submitted: (submitted_at, value),
        };
        self.entries.push_back(self.entries.back().map_or(first, |before| first.after(before)));
    }

    /// Forgets the oldest job.
    pub(crate) fn forget_oldest(&mut self) {
        self.entries.pop_front();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The statistics of the remembered jobs at this time; `None` before the first of them ended.
    pub(crate) fn statistics_at(&self, moment: Time) -> Option<Statistics> {
        let known = self.entries.partition_point(|entry| entry.known_at <= moment);
        let newest = self.entries.get(known.checked_sub(1)?)?;
        let recent = self.newest(known, MEDIAN_WINDOW);
        let (mean, deviation) = self.moments(newest, known as f64);
        Some(Statistics {
            code: self.code,
            count: known as u64,
            last: newest.value,
            since_last: moment.since(newest.known_at),
            last_submitted: newest.last_submitted.1,
            since_last_submitted: moment.since(newest.last_submitted.0),
            mean,
            deviation,
            exponential_mean: newest.exponential_mean,
            recent: recent.len(),
            range: range(&recent),
            median: median(recent)?,
            short_median: median(self.newest(known, SHORT_MEDIAN_WINDOW))?,
        })
    }

    /// The newest values of the first `known`.
    fn newest(&self, known: usize, count: usize) -> Vec<f64> {
        self.entries.range(known.saturating_sub(count)..known).map(|entry| entry.value).collect()
    }

    /// Mean and standard deviation of the first `count` entries, without the sums of what was forgotten.
    fn moments(&self, newest: &Entry, count: f64) -> (f64, f64) {
        let forgotten = |sum: fn(&Entry) -> f64, own: fn(f64) -> f64| {
            self.entries.front().map_or(0.0, |oldest| sum(oldest) - own(oldest.value))
        };
        let mean = (newest.sum - forgotten(|it| it.sum, |value| value)) / count;
        let squares = (newest.squares - forgotten(|it| it.squares, |value| value * value)) / count;
        (mean, (squares - mean * mean).max(0.0).sqrt())
    }
}

impl Entry {
    fn after(self, before: &Entry) -> Entry {
        Entry {
            known_at: self.known_at.max(before.known_at),
            value: self.value,
            sum: before.sum + self.sum,
            squares: before.squares + self.squares,
            exponential_mean: before.exponential_mean + SMOOTHING * (self.value - before.exponential_mean),
            last_submitted: if self.last_submitted.0 >= before.last_submitted.0 {
                self.last_submitted
            } else {
                before.last_submitted
            },
        }
    }
}

fn range(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    greatest - least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::EPOCH + Span::from_secs(secs)
    }

    /// A job every ten seconds, submitted five seconds before its end.
    fn cohort(values: impl IntoIterator<Item = f64>) -> Cohort {
        let mut cohort = Cohort::new(1);
        for (index, value) in values.into_iter().enumerate() {
            let ended = 10 * (index as u64 + 1);
            cohort.add(at(ended - 5), at(ended), value);
        }
        cohort
    }

    #[test]
    fn statistics_contain_only_jobs_that_had_ended() {
        let cohort = cohort([1.0, 2.0, 6.0]);
        assert_eq!(cohort.statistics_at(at(9)), None);
        let statistics = cohort.statistics_at(at(29)).unwrap();
        assert_eq!(
            (statistics.count, statistics.last, statistics.mean, statistics.deviation),
            (2, 2.0, 1.5, 0.5)
        );
        assert_eq!(
            (statistics.since_last, statistics.since_last_submitted),
            (Span::from_secs(9), Span::from_secs(14))
        );
        assert_eq!(cohort.statistics_at(at(30)).unwrap().mean, 3.0);
    }

    #[test]
    fn medians_are_of_the_newest_values() {
        let statistics = cohort((0..40).map(f64::from)).statistics_at(Time::NEVER).unwrap();
        assert_eq!((statistics.count, statistics.recent, statistics.range), (40, 20, 19.0));
        assert_eq!((statistics.median, statistics.short_median), (29.0, 37.0));
        assert!((statistics.exponential_mean - 39.0).abs() < 2.5);
    }

    #[test]
    fn the_last_submitted_job_is_found() {
        let mut cohort = cohort([1.0]);
        cohort.add(at(20), at(30), 2.0);
        cohort.add(at(6), at(40), 3.0);
        let statistics = cohort.statistics_at(at(50)).unwrap();
        assert_eq!(
            (statistics.last, statistics.last_submitted, statistics.since_last_submitted),
            (3.0, 2.0, Span::from_secs(30))
        );
    }

    #[test]
    fn forgotten_values_are_in_no_count_mean_or_range() {
        let mut forgetting = cohort([100.0, 1.0, 2.0]);
        forgetting.forget_oldest();
        let statistics = forgetting.statistics_at(at(30)).unwrap();
        assert_eq!((statistics.count, statistics.mean, statistics.range), (2, 1.5, 1.0));
        assert!((statistics.deviation - 0.5).abs() < 1e-9);
    }

    #[test]
    fn an_end_out_of_order_counts_no_earlier_than_the_one_before() {
        let mut cohort = cohort([1.0, 2.0]);
        cohort.add(at(1), at(3), 9.0);
        cohort.add(at(35), at(40), 4.0);
        assert_eq!(cohort.statistics_at(at(15)).unwrap().last, 1.0);
        assert_eq!(cohort.statistics_at(at(20)).unwrap().last, 9.0);
    }

    /// Mean and standard deviation from the values themselves.
    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
        let center = mean(&mut values.iter().copied(), values.len());
        let distances = &mut values.iter().map(|value| (value - center).powi(2));
        (center, mean(distances, values.len()).sqrt())
    }

    proptest::proptest! {
        #[test]
        fn running_sums_agree_with_the_values(
            values in proptest::collection::vec(0.0..20.0_f64, 1..60),
            forgotten in 0_usize..60,
            known in 1_usize..60,
        ) {
            let known = known.min(values.len());
            let forgotten = forgotten.min(known - 1);
            let mut cohort = cohort(values.clone());
            (0..forgotten).for_each(|_| cohort.forget_oldest());
            let statistics = cohort.statistics_at(at(10 * known as u64)).unwrap();
            let (mean, deviation) = moments(&values[forgotten..known]);
            proptest::prop_assert!((statistics.mean - mean).abs() < 1e-9);
            proptest::prop_assert!((statistics.deviation - deviation).abs() < 1e-5);
            proptest::prop_assert_eq!(statistics.last, values[known - 1]);
            proptest::prop_assert_eq!(statistics.count, (known - forgotten) as u64);
        }
    }
}
