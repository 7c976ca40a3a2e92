//! Combines the sources of a rank's progress and measures its rate.
//!
//! Pure. JSON lines take precedence: bars in the output count only until the first JSON line with a step.

use cohabit_types::{Progress, Span, Time};

use super::bars::BarReading;
use super::lines::{ProgressEntry, keep};

/// The time constant of the smoothed rate.
const SMOOTHING: Span = Span::from_secs(10);

/// The progress of a rank.
#[derive(Debug, Default)]
pub struct ProgressTracker {
    progress: Option<Progress>,
    source: Source,
    /// The step at which the rate was last measured, and when.
    measured: Option<(u64, Time)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Source {
    #[default]
    Output,
    File,
}

impl ProgressTracker {
    /// The latest progress.
    #[must_use]
    pub fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    /// Adds an entry of the progress file.
    pub fn line(&mut self, now: Time, line: ProgressEntry) {
        if self.source == Source::Output && line.step.is_some() {
            *self = ProgressTracker { source: Source::File, ..ProgressTracker::default() };
        }
        if self.source == Source::Output {
            return;
        }
        let mut progress = self.progress.take().unwrap_or_default();
        progress.step = line.step.unwrap_or(progress.step);
        progress.total = line.total.or(progress.total);
        line.metrics.into_iter().for_each(|(name, value)| keep(&mut progress.metrics, name, value));
        self.update(now, progress);
    }

    /// Adds a bar from the output.
    pub fn bar(&mut self, now: Time, bar: BarReading) {
        if self.source == Source::Output {
            let mut progress = self.progress.take().unwrap_or_default();
            progress.step = bar.step;
            progress.total = Some(bar.total);
            self.update(now, progress);
        }
    }

    fn update(&mut self, now: Time, mut progress: Progress) {
        self.measure(now, &mut progress);
        progress.at = now;
        self.progress = Some(progress);
    }

    /// The rate is an exponential moving average over time. A step that goes back restarts the measurement
    /// and keeps the rate.
    fn measure(&mut self, now: Time, progress: &mut Progress) {
        let Some((step, at)) = self.measured else {
            self.measured = Some((progress.step, now));
            return;
        };
        let elapsed = now.since(at).as_secs_f64();
        if progress.step > step && elapsed > 0.0 {
            let rate = (progress.step - step) as f64 / elapsed;
            let weight = 1.0 - (-elapsed / SMOOTHING.as_secs_f64()).exp();
            progress.rate = Some(progress.rate.map_or(rate, |old| old + weight * (rate - old)));
        }
        if progress.step < step || elapsed > 0.0 && progress.step != step {
            self.measured = Some((progress.step, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::MetricValue;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::EPOCH + Span::from_secs(seconds)
    }

    fn step(step: u64) -> ProgressEntry {
        ProgressEntry { step: Some(step), ..ProgressEntry::default() }
    }

    fn rate_of(steps: &[(u64, u64)]) -> Option<f64> {
        let mut tracker = ProgressTracker::default();
        steps.iter().for_each(|(seconds, done)| tracker.line(at(*seconds), step(*done)));
        tracker.progress().and_then(|progress| progress.rate)
    }

    #[test]
    fn there_is_a_rate_from_the_second_step_on() {
        assert_eq!(rate_of(&[(0, 500)]), None);
        assert_eq!(rate_of(&[(0, 500), (5, 500)]), None);
        assert_eq!(rate_of(&[(0, 500), (5, 510)]), Some(2.0));
        assert_eq!(rate_of(&[(0, 500), (2, 500), (5, 510)]), Some(2.0));
    }

    #[test]
    fn the_rate_follows_a_change_smoothly() {
        let slow_then_fast = [(0, 0), (100, 100), (101, 111)];
        let rate = rate_of(&slow_then_fast).unwrap();
        assert!((1.5..3.0).contains(&rate), "{rate}");
        let mut long = slow_then_fast.to_vec();
        long.extend((2..100).map(|n| (100 + n, 100 + 11 * n)));
        assert!((rate_of(&long).unwrap() - 11.0).abs() < 0.1);
    }

    #[test]
    fn a_step_that_goes_back_gives_no_negative_rate() {
        assert_eq!(rate_of(&[(0, 0), (1, 10), (2, 0)]), Some(10.0));
        assert_eq!(rate_of(&[(0, 0), (1, 10), (2, 0), (3, 10)]), Some(10.0));
        assert_eq!(rate_of(&[(0, 0), (0, 10)]), None);
    }

    #[test]
    fn metrics_stay_until_they_are_replaced() {
        let mut tracker = ProgressTracker::default();
        let metric = |name: &str, value| ProgressEntry {
            metrics: [(name.to_owned(), MetricValue(value))].into(),
            ..ProgressEntry::default()
        };
        tracker.line(at(0), metric("ignored", 0.0));
        assert_eq!(tracker.progress(), None);
        tracker.line(at(0), ProgressEntry { total: Some(9), ..step(1) });
        tracker.line(at(1), metric("loss", 0.5));
        tracker.line(at(2), ProgressEntry { metrics: metric("accuracy", 0.9).metrics, ..step(2) });
        let progress = tracker.progress().unwrap();
        assert_eq!((progress.step, progress.total, progress.at), (2, Some(9), at(2)));
        assert_eq!(
            progress.metrics,
            [("accuracy".to_owned(), 0.9.into()), ("loss".to_owned(), 0.5.into())].into()
        );
    }

    #[test]
    fn bars_count_until_the_first_json_line() {
        let mut tracker = ProgressTracker::default();
        tracker.bar(at(0), BarReading { step: 90, total: 100 });
        assert_eq!(tracker.progress().map(|p| (p.step, p.total)), Some((90, Some(100))));
        tracker.line(at(1), step(1));
        tracker.bar(at(2), BarReading { step: 91, total: 100 });
        let progress = tracker.progress().unwrap();
        assert_eq!((progress.step, progress.total, progress.rate), (1, None, None));
    }
}
