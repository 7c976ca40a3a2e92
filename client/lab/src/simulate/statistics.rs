//! Means over several runs, paired comparisons with intervals, and times as text.

use cohabit_types::Span;
use serde::Serialize;

/// The mean and the standard deviation of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanAndDeviation {
    pub(super) mean: f64,
    /// The standard deviation of the sample; none for a single number.
    pub(super) deviation: Option<f64>,
}

/// An estimate of a mean with its 95% interval by Student's t; none for a single number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Interval {
    pub(super) mean: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
}

impl MeanAndDeviation {
    /// Of a sample of at least one number.
    pub(super) fn of(numbers: &[f64]) -> MeanAndDeviation {
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        let deviation = (numbers.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        MeanAndDeviation { mean, deviation }
    }

    /// The values, in seconds, as text: `1 h 3 min ± 4 min 10 s`.
    pub(super) fn time(self) -> String {
        match self.deviation {
            Some(deviation) => format!("{} ± {}", time(self.mean), time(deviation)),
            None => time(self.mean),
        }
    }
}

impl Interval {
    /// The mean of a sample of at least one number.
    pub(super) fn of(numbers: &[f64]) -> Interval {
        let MeanAndDeviation { mean, deviation } = MeanAndDeviation::of(numbers);
        let half = deviation
            .map(|deviation| student_t(numbers.len() - 1) * deviation / (numbers.len() as f64).sqrt());
        Interval { mean, low: half.map(|half| mean - half), high: half.map(|half| mean + half) }
    }

    /// The geometric mean of positive ratios, with the interval of the mean of their logarithms.
    pub(super) fn of_ratios(ratios: &[f64]) -> Interval {
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let Interval { mean, low, high } = Interval::of(&logarithms);
        Interval { mean: mean.exp(), low: low.map(f64::exp), high: high.map(f64::exp) }
    }

    /// As a ratio: `0.87 x [0.80, 0.95]`.
    pub(super) fn ratio(self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{:.2} x [{low:.2}, {high:.2}]", self.mean),
            (_, _) => format!("{:.2} x", self.mean),
        }
    }
}

/// 97.5% quantiles of Student's t for 1 to 30 degrees of freedom (any table of statistics).
const T_QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The 97.5% quantile of Student's t for at least one degree of freedom; above 30 by the first two terms of
/// its expansion around the normal quantile, which is exact to three digits there.
fn student_t(freedom: usize) -> f64 {
    const NORMAL: f64 = 1.959_964;
    T_QUANTILES.get(freedom.saturating_sub(1)).copied().unwrap_or_else(|| {
        let freedom = freedom as f64;
        NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * freedom)
    })
}

/// Seconds as text.
pub(super) fn time(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_mean_and_the_deviation_of_a_sample() {
        assert_eq!(
            MeanAndDeviation::of(&[2.0, 4.0, 6.0]),
            MeanAndDeviation { mean: 4.0, deviation: Some(2.0) }
        );
        assert_eq!(MeanAndDeviation::of(&[7.0]), MeanAndDeviation { mean: 7.0, deviation: None });
        assert_eq!(MeanAndDeviation::of(&[60.0, 62.0]).time(), "1 min 1 s ± 1.4 s");
        assert_eq!(MeanAndDeviation::of(&[60.0]).time(), "1 min 0 s");
    }

    #[test]
    fn ratios_are_averaged_as_ratios() {
        assert!((Interval::of_ratios(&[2.0, 0.5]).mean - 1.0).abs() < 1e-12);
        let one = Interval::of_ratios(&[0.8]);
        assert!((one.mean - 0.8).abs() < 1e-12 && one.low.is_none() && one.high.is_none());
        assert_eq!(one.ratio(), "0.80 x");
    }

    #[test]
    fn intervals_are_those_of_student() {
        // Gosset's data on sleep, as R's t.test(extra ~ group, paired = TRUE) gives them.
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let interval = Interval::of(&differences);
        let (low, high) = (interval.low.unwrap(), interval.high.unwrap());
        assert!((interval.mean - 1.58).abs() < 1e-9, "{interval:?}");
        assert!((low - 0.700_114).abs() < 1e-3 && (high - 2.459_886).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn quantiles_of_student_fall_to_the_normal_one() {
        let quantiles: Vec<f64> = (1..2_000).map(student_t).collect();
        assert!(quantiles.windows(2).all(|pair| pair[1] <= pair[0] + 1e-3), "{quantiles:?}");
        assert!((student_t(60) - 2.000).abs() < 1e-3 && (student_t(120) - 1.980).abs() < 1e-3);
        assert!((student_t(1_000_000) - 1.96).abs() < 1e-3);
    }
}
