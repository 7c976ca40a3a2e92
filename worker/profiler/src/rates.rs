//! How fast a workload gets on, and whether it does so steadily.
//!
//! Pure. A rate is counted from the sight of one step to the sight of another: a workload that makes few
//! steps is not charged for the part of a step at either end.

use std::time::Duration;

/// Windows into which the time that has to be steady is divided.
const WINDOWS: u32 = 5;

/// The fastest and the slowest window of a steady workload lie at most this part of the rate apart.
const MAX_SPREAD: f64 = 0.05;

/// Measuring lasts at most so many times as long as the time that has to be steady.
const MAX_LENGTH_FACTOR: u32 = 3;

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialTiming {
    /// Steps of this time after the first are not counted.
    pub warm_up: Duration,
    /// Rates have to be steady for this long; measuring ends after three times as long in any case.
    pub steady: Duration,
}

/// The steps of one workload as they were seen.
#[derive(Debug, Default)]
pub(super) struct StepMarks {
    /// When which step was first seen; both ascend.
    marks: Vec<(Duration, u64)>,
}

/// A rate and how well it is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rate {
    /// Steps a second.
    pub(super) per_second: f64,
    /// From the slowest window to the fastest, as a part of the rate; none where a window saw no step.
    pub(super) spread: Option<f64>,
    /// Steps a second in each window that saw one.
    pub(super) windows: Vec<f64>,
}

/// What the paces of a set say together.
#[derive(Debug, PartialEq)]
pub(super) enum RateResult {
    /// More has to be seen.
    Wait,
    /// The rates, in the order of the members.
    Rates(Vec<Rate>),
    /// This member made too few steps to have a rate.
    Stalled(usize),
}

impl StepMarks {
    /// Takes note of a step; one that goes back begins anew.
    pub(super) fn saw(&mut self, at: Duration, step: u64) {
        match self.marks.last() {
            Some((_, last)) if step == *last => return,
            Some((_, last)) if step < *last => self.marks.clear(),
            Some(_) | None => {}
        }
        self.marks.push((at, step));
    }

    /// When its first step was seen.
    pub(super) fn begun(&self) -> Option<Duration> {
        self.marks.first().map(|(at, _)| *at)
    }

    /// Steps a second between the last sights up to these times.
    fn rate(&self, from: Duration, to: Duration) -> Option<f64> {
        let last_until = |time: Duration| {
            let after = self.marks.partition_point(|(at, _)| *at <= time);
            after.checked_sub(1).map(|at| self.marks[at])
        };
        let (begin, first) = last_until(from).or_else(|| self.marks.first().copied())?;
        let (end, last) = last_until(to)?;
        (end > begin).then(|| (last - first) as f64 / (end - begin).as_secs_f64())
    }

    /// The rate over this time, and its spread over the windows at its end.
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

/// What to make of these paces, when measuring began at `from`. Steady rates are those of the last of it;
/// others those of all of it.
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

    /// A pace with a step after each of these times.
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
    fn an_even_pace_is_steady_as_soon_as_it_may_be() {
        let even = pace([100; 400]);
        assert_eq!(measure_rates(&[&even], ms(0), ms(9_990), STEADY), RateResult::Wait);
        let rate = &rates(&[&even], 10_150)[0];
        assert!((rate.per_second - 10.0).abs() < 1e-9 && rate.is_steady(), "{rate:?}");
        assert_eq!(rate.windows.len(), 5);
    }

    #[test]
    fn a_slow_pace_is_not_charged_for_parts_of_steps() {
        let slow = pace([700; 60]);
        let rate = &rates(&[&slow], 12_000)[0];
        assert!((rate.per_second - 1.0 / 0.7).abs() < 1e-9, "{rate:?}");
        assert!(rate.is_steady());
    }

    #[test]
    fn one_unsteady_member_keeps_the_set_until_time_is_over() {
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
    fn a_member_that_stands_still_is_named() {
        let (even, stuck) = (pace([100; 400]), pace([100]));
        assert_eq!(measure_rates(&[&even, &stuck], ms(0), ms(30_000), STEADY), RateResult::Stalled(1));
        let few = pace([4_000; 8]);
        assert_eq!(rates(&[&few], 30_000)[0].spread, None);
    }

    #[test]
    fn a_step_that_goes_back_begins_anew() {
        let mut pace = pace([1_000; 5]);
        pace.saw(ms(6_000), 0);
        assert_eq!(pace.begun(), Some(ms(6_000)));
    }
}
