//! How far estimates are from what happened, apart for recurring and for new groups of jobs.
//!
//! The measures are those that section 4 of the project's A-SRPT notes asks for. Nothing is estimated here.

use serde::{Deserialize, Serialize};

/// Whether an estimator could know the group of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurrence {
    /// A job of the same user and group had ended before.
    Recurring,
    /// None had.
    FirstSeen,
}

/// Estimates compared with what happened.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Of all jobs.
    pub all: AccuracyStats,
    /// Of those whose group had been seen.
    pub recurring: AccuracyStats,
    /// Of those whose group had not.
    pub first_seen: AccuracyStats,
}

/// Estimates of one set of jobs compared with what happened.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyStats {
    /// How many jobs there were.
    pub jobs: u64,
    /// For how many of them something was expected.
    pub estimated: u64,
    /// How far off those were; none if there were none.
    pub errors: Option<EstimateErrors>,
}

/// How far estimates were from what happened.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EstimateErrors {
    /// Mean of |estimate - truth| / truth.
    pub mape: f64,
    /// Median of the same.
    pub median_relative_error: f64,
    /// Share of estimates between half and twice the truth, 0 to 1.
    pub within_factor_2: f64,
    /// The natural logarithm of estimate / truth: below 0 is too low.
    pub log_ratio: Percentiles,
}

/// Three of a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// One in twenty is lower.
    pub p5: f64,
    /// Half are lower.
    pub p50: f64,
    /// One in twenty is higher.
    pub p95: f64,
}

/// Collects estimates and what happened.
#[derive(Debug, Default, Clone)]
pub struct AccuracyAccumulator {
    recurring: EstimatePairs,
    first_seen: EstimatePairs,
}

#[derive(Debug, Default, Clone)]
struct EstimatePairs {
    jobs: u64,
    /// Estimate, truth.
    pairs: Vec<(f64, f64)>,
}

impl AccuracyAccumulator {
    /// Takes note of a job that took `truth`. Both are counted as at least one: a second, an iteration.
    pub fn note(&mut self, recurrence: Recurrence, estimated: Option<f64>, truth: f64) {
        let pairs = match recurrence {
            Recurrence::Recurring => &mut self.recurring,
            Recurrence::FirstSeen => &mut self.first_seen,
        };
        pairs.jobs += 1;
        pairs.pairs.extend(estimated.map(|estimated| (estimated.max(1.0), truth.max(1.0))));
    }

    /// What the notes say.
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
        let relative = sorted(self.pairs.iter().map(|(said, truth)| (said - truth).abs() / truth));
        let ratios = sorted(self.pairs.iter().map(|(said, truth)| (said / truth).ln()));
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

/// The value with this part of the others below it.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_what_happened() {
        let mut tally = AccuracyAccumulator::default();
        for estimated in [50.0, 100.0, 201.0] {
            tally.note(Recurrence::Recurring, Some(estimated), 100.0);
        }
        let AccuracyStats { jobs, estimated, errors: Some(errors) } = tally.accuracy().recurring else {
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
    fn a_job_of_which_nothing_was_expected_counts_as_a_job_only() {
        let mut tally = AccuracyAccumulator::default();
        tally.note(Recurrence::FirstSeen, None, 10.0);
        tally.note(Recurrence::Recurring, Some(10.0), 10.0);
        let accuracy = tally.accuracy();
        assert_eq!(accuracy.first_seen, AccuracyStats { jobs: 1, estimated: 0, errors: None });
        assert_eq!((accuracy.all.jobs, accuracy.all.estimated), (2, 1));
    }
}
