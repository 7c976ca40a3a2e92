//! The accuracy of estimates, separately for recurring and for new groups of jobs.
//!
//! The measures are those of section 4 of the project's A-SRPT notes. Nothing is estimated here.

use serde::{Deserialize, Serialize};

/// Whether an estimator could know the group of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurrence {
    /// A job of the same user and group had ended before.
    Recurring,
    /// No such job had ended.
    FirstSeen,
}

/// Estimates compared with the true values.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// All jobs.
    pub all: AccuracyStats,
    /// Jobs whose group had been seen.
    pub recurring: AccuracyStats,
    /// Jobs whose group had not been seen.
    pub first_seen: AccuracyStats,
}

/// Estimates of one set of jobs compared with the true values.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyStats {
    /// Number of jobs.
    pub jobs: u64,
    /// Number of jobs with an estimate.
    pub estimated: u64,
    /// The errors of these estimates; `None` without estimates.
    pub errors: Option<EstimateErrors>,
}

/// Errors of estimates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EstimateErrors {
    /// Mean absolute percentage error as a fraction: the mean of |estimate - truth| / truth.
    pub mape: f64,
    /// Median of |estimate - truth| / truth.
    pub median_relative_error: f64,
    /// Fraction of estimates between half and twice the true value, 0 to 1.
    pub within_factor_2: f64,
    /// ln(estimate / truth): below 0, the estimate is too low.
    pub log_ratio: Percentiles,
}

/// Three percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// Collects estimates and true values.
#[derive(Debug, Default, Clone)]
pub struct AccuracyAccumulator {
    recurring: EstimatePairs,
    first_seen: EstimatePairs,
}

#[derive(Debug, Default, Clone)]
struct EstimatePairs {
    jobs: u64,
    /// Estimate and true value.
    pairs: Vec<(f64, f64)>,
}

impl AccuracyAccumulator {
    /// Adds a job whose true value is `truth`, in seconds or iterations. Both values count as at least 1.
    pub fn note(&mut self, recurrence: Recurrence, estimated: Option<f64>, truth: f64) {
        let pairs = match recurrence {
            Recurrence::Recurring => &mut self.recurring,
            Recurrence::FirstSeen => &mut self.first_seen,
        };
        pairs.jobs += 1;
        pairs.pairs.extend(estimated.map(|estimated| (estimated.max(1.0), truth.max(1.0))));
    }

    /// The accuracy of everything that was added.
    #[must_use]
    pub fn accuracy(&self) -> Accuracy {
        let all = EstimatePairs {
            jobs: self.recurring.jobs + self.first_seen.jobs,
            pairs: [&self.recurring.pairs[..], &self.first_seen.pairs[..]].concat(),
        };
        Accuracy {
            all: all.summarize(),
            recurring: self.recurring.summarize(),
            first_seen: self.first_seen.summarize(),
        }
    }
}

impl EstimatePairs {
    fn summarize(&self) -> AccuracyStats {
        let (jobs, estimated) = (self.jobs, self.pairs.len() as u64);
        AccuracyStats { jobs, estimated, errors: (estimated > 0).then(|| self.errors()) }
    }

    fn errors(&self) -> EstimateErrors {
        let count = self.pairs.len() as f64;
        let relative = sorted(self.pairs.iter().map(|(predicted, truth)| (predicted - truth).abs() / truth));
        let ratios = sorted(self.pairs.iter().map(|(predicted, truth)| (predicted / truth).ln()));
        let close = ratios.iter().filter(|ratio| ratio.abs() <= std::f64::consts::LN_2 + 1e-12).count();
        EstimateErrors {
            mape: relative.iter().sum::<f64>() / count,
            median_relative_error: quantile(&relative, 0.5),
            within_factor_2: close as f64 / count,
            log_ratio: Percentiles {
                p5: quantile(&ratios, 0.05),
                p50: quantile(&ratios, 0.5),
                p95: quantile(&ratios, 0.95),
            },
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The value below which this fraction of the others lies.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_the_true_value() {
        let mut accumulator = AccuracyAccumulator::default();
        for estimated in [50.0, 100.0, 201.0] {
            accumulator.note(Recurrence::Recurring, Some(estimated), 100.0);
        }
        let AccuracyStats { jobs, estimated, errors: Some(errors) } = accumulator.accuracy().recurring else {
            panic!("three estimates were noted")
        };
        assert_eq!((jobs, estimated), (3, 3));
        assert!((errors.mape - 1.51 / 3.0).abs() < 1e-12);
        assert_eq!(errors.median_relative_error, 0.5);
        assert!((errors.within_factor_2 - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(errors.log_ratio.p50, 0.0);
        assert!((errors.log_ratio.p5 + std::f64::consts::LN_2).abs() < 1e-12);
    }

    #[test]
    fn a_job_without_an_estimate_counts_as_a_job_only() {
        let mut accumulator = AccuracyAccumulator::default();
        accumulator.note(Recurrence::FirstSeen, None, 10.0);
        accumulator.note(Recurrence::Recurring, Some(10.0), 10.0);
        let accuracy = accumulator.accuracy();
        assert_eq!(accuracy.first_seen, AccuracyStats { jobs: 1, estimated: 0, errors: None });
        assert_eq!((accuracy.all.jobs, accuracy.all.estimated), (2, 1));
    }
}
