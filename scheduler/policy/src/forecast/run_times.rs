//! How long a job runs, judged by the run times of jobs like it.
//!
//! The distribution has a kernel around the logarithm of each run time, and a wide one around their median
//! with the weight of two runs, for what has not happened yet. Kernels are logistic, so that the part of jobs
//! which run for longer than some time is a sum of quotients. Their widths grow with the spread of the run
//! times, and with fewer of them. The constants are those with which stated intervals held on three traces
//! (`cohabit-sim`, `calibration`).

use cohabit_types::Span;

/// Fewer runs tell nothing.
pub(super) const MIN_RUNS: usize = 3;

/// The weight of the wide kernel, in runs.
const UNSEEN_WEIGHT: f64 = 2.0;
/// Its width, in units of the natural logarithm.
const UNSEEN_WIDTH: f64 = 1.2;
/// The least width of the other kernels.
const LEAST_WIDTH: f64 = 0.18;
/// Their width for a spread of 1, where spreads beyond 1 count as 1.
const WIDTH_BY_SPREAD: f64 = 0.2;
/// Their additional width for a single run.
const WIDTH_BY_COUNT: f64 = 0.4;
/// Run times below this one count as this one, in seconds.
const SHORTEST: f64 = 1.0;
/// The longest time that is stated, as the natural logarithm of seconds: more than a thousand years.
const LONGEST: f64 = 25.0;

/// The run times of jobs like one.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTimeDistribution {
    /// Logarithms of run times in seconds.
    logs: Vec<f64>,
    median: f64,
    width: f64,
}

/// How much longer a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingTime {
    /// Half of such jobs take less.
    pub typical: Span,
    /// One in ten takes less.
    pub least: Span,
    /// One in ten takes more.
    pub most: Span,
}

impl RemainingTime {
    /// A time that is known.
    #[must_use]
    pub const fn exactly(time: Span) -> RemainingTime {
        RemainingTime { typical: time, least: time, most: time }
    }

    /// The time below which this part of such jobs lies: straight lines between what is known, which go on
    /// beyond it.
    #[must_use]
    pub fn at_part(self, part: f64) -> Span {
        let [least, typical, most] = [self.least, self.typical, self.most].map(Span::as_secs_f64);
        let slope = if part < 0.5 { typical - least } else { most - typical } / 0.4;
        Span::from_secs_f64((typical + slope * (part - 0.5)).max(0.0))
    }

    /// So many times as long.
    #[must_use]
    pub fn times(self, factor: f64) -> RemainingTime {
        let times = |span: Span| Span::from_secs_f64(span.as_secs_f64() * factor);
        RemainingTime { typical: times(self.typical), least: times(self.least), most: times(self.most) }
    }
}

impl RunTimeDistribution {
    /// The distribution by these run times; `None` where they are too few.
    #[must_use]
    pub fn of(runs: impl IntoIterator<Item = Span>) -> Option<RunTimeDistribution> {
        let seconds = runs.into_iter().map(Span::as_secs_f64);
        let mut logs: Vec<f64> = seconds.map(|it| it.max(SHORTEST).ln()).collect();
        if logs.len() < MIN_RUNS {
            return None;
        }
        logs.sort_by(f64::total_cmp);
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let width = LEAST_WIDTH + WIDTH_BY_SPREAD * variance.sqrt().min(1.0) + WIDTH_BY_COUNT / count;
        Some(RunTimeDistribution { median: logs[logs.len() / 2], logs, width })
    }

    /// How much longer a job runs that has run for this long.
    #[must_use]
    pub fn remaining(&self, age: Span) -> RemainingTime {
        let age = age.as_secs_f64();
        let rest = |part| Span::from_secs_f64((self.run_time_at(part, age) - age).max(0.0));
        RemainingTime { least: rest(0.1), typical: rest(0.5), most: rest(0.9) }
    }

    /// The run time at which this part has ended of those jobs that run for at least `age`, all in seconds.
    fn run_time_at(&self, part: f64, age: f64) -> f64 {
        let (mut low, mut high) = if age > 0.0 { (age.ln(), LONGEST) } else { (-LONGEST, LONGEST) };
        let wanted = (1.0 - part) * if age > 0.0 { self.longer_than(low) } else { 1.0 };
        // Each step halves the interval: in the end, a time is known to one part in ten million.
        for _ in 0..30 {
            let middle = f64::midpoint(low, high);
            if self.longer_than(middle) > wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        high.exp()
    }

    /// The part of jobs that run for longer than this logarithm of seconds.
    fn longer_than(&self, log: f64) -> f64 {
        let kernel = |center: f64, width: f64| 1.0 / (1.0 + ((log - center) / width).exp());
        let seen: f64 = self.logs.iter().map(|center| kernel(*center, self.width)).sum();
        let unseen = UNSEEN_WEIGHT * kernel(self.median, UNSEEN_WIDTH);
        (seen + unseen) / (self.logs.len() as f64 + UNSEEN_WEIGHT)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn runs(seconds: impl IntoIterator<Item = u64>) -> Option<RunTimeDistribution> {
        RunTimeDistribution::of(seconds.into_iter().map(Span::from_secs))
    }

    #[test]
    fn two_runs_tell_nothing() {
        assert_eq!(runs([60, 61]), None);
        assert!(runs([60, 61, 62]).is_some());
    }

    #[test]
    fn runs_that_are_alike_give_a_narrow_range_and_a_few_a_wide_one() {
        let minutes = |it: RemainingTime| [it.least, it.typical, it.most].map(|it| it.as_secs_f64() / 60.0);
        let [least, typical, most] = minutes(runs([600; 20]).unwrap().remaining(Span::ZERO));
        assert!((5.5..8.0).contains(&least) && (13.0..18.0).contains(&most), "{least} to {most}");
        assert!((typical - 10.0).abs() < 0.01, "{typical}");
        let [least, _, most] = minutes(runs([600; 3]).unwrap().remaining(Span::ZERO));
        assert!((2.0..5.0).contains(&least) && (20.0..60.0).contains(&most), "{least} to {most}");
    }

    #[test]
    fn a_job_that_runs_longer_than_all_others_goes_on_for_about_as_long_again() {
        let known = runs([4; 14]).unwrap();
        let rest = known.remaining(Span::from_secs(3_600));
        assert!(rest.typical > Span::from_secs(600) && rest.most > Span::from_secs(3_600), "{rest:?}");
        assert!(known.remaining(Span::ZERO).most < Span::from_secs(30));
    }

    proptest! {
        #[test]
        fn ranges_are_ordered_and_finite(
            seconds in proptest::collection::vec(0_u64..10_000_000, 3..20),
            age in 0_u64..100_000_000,
        ) {
            let rest = runs(seconds).unwrap().remaining(Span::from_secs(age));
            prop_assert!(rest.least <= rest.typical && rest.typical <= rest.most);
        }
    }
}
