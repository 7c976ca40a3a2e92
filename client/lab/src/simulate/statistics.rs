//! Means over several runs, and times as text.

use cohabit_types::Span;

/// The mean and the standard deviation of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeanAndDeviation {
    pub(super) mean: f64,
    /// The standard deviation of the sample; none for a single number.
    pub(super) deviation: Option<f64>,
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

/// Seconds as text.
pub(super) fn time(seconds: f64) -> String {
    Span::from_secs_f64(seconds).to_string()
}

/// The geometric mean of ratios.
pub(super) fn mean_ratio(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
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
        assert!((mean_ratio(&[2.0, 0.5]) - 1.0).abs() < 1e-12);
        assert!((mean_ratio(&[0.8]) - 0.8).abs() < 1e-12);
    }
}
