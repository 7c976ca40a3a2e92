//! The rate of a workload, and whether it is steady.
//!
//! Pure. A rate is measured from one observed step to another, so that partial steps at both ends do not
//! distort the rate of a workload with few steps.

use std::time::Duration;

/// The number of windows into which the steady time is divided.
const WINDOWS: u32 = 5;

/// The largest difference between the fastest and the slowest window of a steady workload, relative to its
/// rate.
const MAX_SPREAD: f64 = 0.05;

/// The longest measurement, as a multiple of the steady time.
const MAX_LENGTH_FACTOR: u32 = 3;

/// The timing of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialTiming {
    /// Steps in this time after the first one are not counted.
    pub warm_up: Duration,
    /// Rates must be steady for this long. Measuring ends after three times as long in any case.
    pub steady: Duration,
}

/// The observed steps of one workload.
#[derive(Debug, Default)]
pub(super) struct StepMarks {
    /// When each step was first observed; both ascend.
    marks: Vec<(Duration, u64)>,
}

/// A rate and its spread.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rate {
    /// Steps per second.
    pub(super) per_second: f64,
    /// The difference between the fastest and the slowest window, relative to the rate; `None` if a window
    /// had no step.
    pub(super) spread: Option<f64>,
    /// Steps per second in each window with a step.
    pub(super) windows: Vec<f64>,
}

/// The rates of a set.
#[derive(Debug, PartialEq)]
pub(super) enum RateResult {
    /// More steps are needed.
    Wait,
    /// The rates, in the order of the members.
    Rates(Vec<Rate>),
    /// This member made too few steps to have a rate.
    Stalled(usize),
}

impl StepMarks {
    /// Records a step. A step that goes back restarts the record.
    pub(super) fn saw(&mut self, at: Duration, step: u64) {
        match self.marks.last() {
            Some((_, last)) if step == *last => return,
            Some((_, last)) if step < *last => self.marks.clear(),
            Some(_) | None => {}
        }
        self.marks.push((at, step));
    }

    /// When its first step was observed.
    pub(super) fn begun(&self) -> Option<Duration> {
        self.marks.first().map(|(at, _)| *at)
    }

    /// Steps per second between the last observations before these times.
    fn rate(&self, from: Duration, to: Duration) -> Option<f64> {
        let last_until = |time: Duration| {
            let after = self.marks.partition_point(|(at, _)| *at <= time);
            after.checked_sub(1).map(|at| self.marks[at])
        };
        let (begin, first) = last_until(from).or_else(|| self.marks.first().copied())?;
        let (end, last) = last_until(to)?;
        (end > begin).then(|| (last - first) as f64 / (end - begin).as_secs_f64())
    }

    /// The rate over this time, with its spread over the windows at the end.
    fn measured(&self, from: Duration, to: Duration, steady: Duration) -> Option<Rate> {
        let per_second = self.rate(from, to)?;
        let width = steady / WINDOWS;
        let window =
            |back: u32| self.rate(to.saturating_sub(width * back), to.saturating_sub(width * (back - 1)));
        let seen: Vec<Option<f64>> = (1..=WINDOWS).rev().map(window).collect();
        let windows: Vec<f64> = seen.iter().copied().flatten().collect();
        let (least, most) = windows
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
        let spread = seen.iter().all(Option::is_some).then(|| (most - least) / per_second);
        Some(Rate { per_second, spread, windows })
    }
}

impl Rate {
    pub(super) fn is_steady(&self) -> bool {
        self.spread.is_some_and(|spread| spread <= MAX_SPREAD)
    }
}

/// The rates of these workloads in a measurement that began at `from`: over its last part if they are steady,
/// else over all of it.
pub(super) fn measure_rates(
    paces: &[&StepMarks],
    from: Duration,
    now: Duration,
    steady: Duration,
) -> RateResult {
    let measured =
        |since: Duration| paces.iter().map(|pace| pace.measured(since, now, steady)).collect::<Vec<_>>();
    if now < from + steady {
        return RateResult::Wait;
    }
    let recent: Option<Vec<Rate>> = measured(now - steady).into_iter().collect();
    if let Some(rates) = recent.filter(|rates| rates.iter().all(Rate::is_steady)) {
        return RateResult::Rates(rates);
    }
    if now < from + steady * MAX_LENGTH_FACTOR {
        return RateResult::Wait;
    }
    let rates = measured(from);
    match rates.iter().position(Option::is_none) {
        Some(stalled) => RateResult::Stalled(stalled),
        None => RateResult::Rates(rates.into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEADY: Duration = Duration::from_secs(10);

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Marks with a step after each of these gaps.
    fn pace(gaps: impl IntoIterator<Item = u64>) -> StepMarks {
        let mut pace = StepMarks::default();
        let mut now = 0;
        for (step, gap) in gaps.into_iter().enumerate() {
            now += gap;
            pace.saw(ms(now), step as u64 + 1);
        }
        pace
    }

    fn rates(paces: &[&StepMarks], now: u64) -> Vec<Rate> {
        let RateResult::Rates(rates) = measure_rates(paces, ms(0), ms(now), STEADY) else {
            panic!("no rates")
        };
        rates
    }

    #[test]
    fn an_even_rate_is_steady_as_soon_as_possible() {
        let even = pace([100; 400]);
        assert_eq!(measure_rates(&[&even], ms(0), ms(9_990), STEADY), RateResult::Wait);
        let rate = &rates(&[&even], 10_150)[0];
        assert!((rate.per_second - 10.0).abs() < 1e-9 && rate.is_steady(), "{rate:?}");
        assert_eq!(rate.windows.len(), 5);
    }

    #[test]
    fn partial_steps_do_not_distort_a_slow_rate() {
        let slow = pace([700; 60]);
        let rate = &rates(&[&slow], 12_000)[0];
        assert!((rate.per_second - 1.0 / 0.7).abs() < 1e-9, "{rate:?}");
        assert!(rate.is_steady());
    }

    #[test]
    fn one_unsteady_member_prolongs_the_measurement_to_its_limit() {
        let (even, uneven) = (pace([100; 400]), pace([50, 50, 50, 50, 4_000].repeat(20)));
        assert_eq!(measure_rates(&[&even, &uneven], ms(0), ms(20_000), STEADY), RateResult::Wait);
        let rates = rates(&[&even, &uneven], 30_000);
        assert!(rates[0].is_steady() && !rates[1].is_steady(), "{rates:?}");
        assert!((rates[1].per_second - 5.0 / 4.2).abs() < 0.1, "{rates:?}");
    }

    #[test]
    fn steps_of_the_warm_up_do_not_count() {
        let late = pace([1_000; 10].into_iter().chain([100; 400]));
        let RateResult::Rates(rates) = measure_rates(&[&late], ms(10_000), ms(20_000), STEADY) else {
            panic!()
        };
        assert!((rates[0].per_second - 10.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn a_stalled_member_is_named() {
        let (even, stuck) = (pace([100; 400]), pace([100]));
        assert_eq!(measure_rates(&[&even, &stuck], ms(0), ms(30_000), STEADY), RateResult::Stalled(1));
        let few = pace([4_000; 8]);
        assert_eq!(rates(&[&few], 30_000)[0].spread, None);
    }

    #[test]
    fn a_step_that_goes_back_restarts_the_record() {
        let mut pace = pace([1_000; 5]);
        pace.saw(ms(6_000), 0);
        assert_eq!(pace.begun(), Some(ms(6_000)));
    }
}
