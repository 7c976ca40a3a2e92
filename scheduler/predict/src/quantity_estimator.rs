//! Estimates one quantity: by the forest if it has seen enough similar jobs, else by the recent median of the
//! closest jobs.
//!
//! It says when a new forest is due and what to fit it to, but fits nothing itself: a simulation fits at
//! once, a live head on another thread.

use cohabit_policy::{CompletedRun, JobFeatures};

use crate::basis;
use crate::cohort_statistics::CohortStatistics;
use crate::forest_model::{ForestModel, TrainingSample};
use crate::history::{History, WINDOW};
use crate::quantity::Quantity;

/// The first forest is fitted to this many jobs.
const MIN_JOBS: u64 = 200;
/// A new forest is due after at least this many more jobs,
const MIN_REFIT_INTERVAL: u64 = 500;
/// or, later, when the number of jobs has grown by one part in this many,
const REFIT_GROWTH_DIVISOR: u64 = 25;
/// but always before too much of the window is new.
const MAX_REFIT_INTERVAL: u64 = WINDOW as u64 / 10;
/// The forest is used for jobs whose user or size it has seen this often.
const MIN_SIMILAR_JOBS: u64 = 50;

/// The estimator of one quantity.
#[derive(Debug)]
pub(crate) struct QuantityEstimator {
    quantity: Quantity,
    history: History,
    model: Option<ForestModel>,
    /// The number of jobs at the latest fit.
    fitted_at: u64,
}

/// A forest to be fitted.
#[derive(Debug, Clone)]
pub(crate) struct PendingFit {
    sample: TrainingSample,
    at: u64,
}

/// A fitted forest.
#[derive(Debug)]
pub(crate) struct CompletedFit {
    model: Option<ForestModel>,
    at: u64,
}

/// The estimate of a quantity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuantityEstimate {
    /// In seconds or iterations.
    pub(crate) value: f64,
    /// The basis in words.
    pub(crate) basis: String,
}

impl QuantityEstimator {
    pub(crate) fn of(quantity: Quantity) -> QuantityEstimator {
        QuantityEstimator { quantity, history: History::of(quantity), model: None, fitted_at: 0 }
    }

    /// Remembers an ended job if it states the quantity.
    pub(crate) fn remember(&mut self, job: &CompletedRun) {
        if let Some(value) = self.quantity.observed_value(job) {
            self.history.add(&job.features, job.ended_at, value.ln_1p());
        }
    }

    /// Estimates the quantity; `None` before any job has ended.
    pub(crate) fn estimate(&self, job: &JobFeatures) -> Option<QuantityEstimate> {
        let past = self.history.past(job);
        let (match_level, statistics) = past.nearest()?;
        let model = self.model.as_ref().filter(|_| has_enough_similar_jobs(&past));
        let correction = model.map(|model| model.correction(&self.history.row(job, &past)));
        Some(QuantityEstimate {
            value: (statistics.median + correction.unwrap_or(0.0)).exp_m1(),
            basis: match correction {
                Some(_) => basis::forest(self.history.len(), past.group.map_or(0, |it| it.count)),
                None => basis::median(match_level, statistics.recent, job),
            },
        })
    }

    /// The forest to be fitted, if one is due.
    pub(crate) fn pending_fit(&self) -> Option<PendingFit> {
        let at = self.history.added();
        (at >= self.next_due()).then(|| PendingFit { sample: TrainingSample::draw(&self.history, at), at })
    }

    fn next_due(&self) -> u64 {
        match self.fitted_at {
            0 => MIN_JOBS,
            fitted_at => {
                fitted_at + (fitted_at / REFIT_GROWTH_DIVISOR).clamp(MIN_REFIT_INTERVAL, MAX_REFIT_INTERVAL)
            }
        }
    }

    /// Uses a fitted forest from now on.
    pub(crate) fn adopt(&mut self, learned: CompletedFit) {
        self.model = learned.model;
        self.fitted_at = learned.at;
    }
}

impl PendingFit {
    pub(crate) fn fit(self) -> CompletedFit {
        CompletedFit { model: self.sample.fit(), at: self.at }
    }
}

fn has_enough_similar_jobs(past: &CohortStatistics) -> bool {
    [past.user, past.shape].into_iter().flatten().any(|statistics| statistics.count >= MIN_SIMILAR_JOBS)
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Span, Time};

    use super::*;

    fn job(user: &str, gpus: u64, number: u64) -> JobFeatures {
        let submitted_at = Time::EPOCH + Span::from_secs(number * 100);
        let group = "a".into();
        JobFeatures {
            user: user.into(),
            group,
            devices_milli: gpus * 1_000,
            submitted_at,
            ..JobFeatures::default()
        }
    }

    /// `jobs` jobs of ada on one GPU; each takes a minute.
    fn trained(jobs: u64) -> QuantityEstimator {
        let mut estimator = QuantityEstimator::of(Quantity::Runtime);
        (0..jobs).for_each(|number| estimator.remember(&done(job("ada", 1, number), 60)));
        estimator
    }

    fn done(features: JobFeatures, secs: u64) -> CompletedRun {
        let runtime = Span::from_secs(secs);
        CompletedRun { ended_at: features.submitted_at + runtime, features, runtime, iterations: None }
    }

    #[test]
    fn a_forest_is_due_when_enough_jobs_were_added() {
        assert!(trained(MIN_JOBS - 1).pending_fit().is_none());
        let mut estimator = trained(MIN_JOBS);
        estimator.adopt(estimator.pending_fit().unwrap().fit());
        assert!(estimator.pending_fit().is_none());
        let due = |fitted_at| {
            QuantityEstimator { fitted_at, ..QuantityEstimator::of(Quantity::Runtime) }.next_due()
        };
        assert_eq!([due(200), due(25_000), due(1_000_000)], [700, 26_000, 1_002_000]);
    }

    #[test]
    fn the_forest_is_used_only_for_jobs_with_enough_similar_ones() {
        let mut estimator = trained(MIN_JOBS);
        (0..49).for_each(|number| estimator.remember(&done(job("eve", 8, MIN_JOBS + number), 600)));
        estimator.adopt(estimator.pending_fit().unwrap().fit());
        let basis = |user, gpus| estimator.estimate(&job(user, gpus, 10_000)).unwrap().basis;
        assert_eq!(basis("ada", 3), "the forest, from 249 jobs, 200 of them of its group");
        assert_eq!(basis("bob", 1), "the forest, from 249 jobs, none of them of its group");
        assert_eq!(basis("eve", 8), "the median of the last 20 jobs of 'a' by eve");
        estimator.remember(&done(job("eve", 8, 300), 600));
        let basis = estimator.estimate(&job("eve", 8, 10_000)).unwrap().basis;
        assert_eq!(basis, "the forest, from 250 jobs, 50 of them of its group");
    }

    #[test]
    fn without_a_forest_the_closest_jobs_give_the_estimate() {
        let mut estimator = QuantityEstimator::of(Quantity::Runtime);
        assert_eq!(estimator.estimate(&job("ada", 1, 9)), None);
        estimator.remember(&done(job("ada", 1, 0), 60));
        estimator.remember(&done(job("eve", 4, 1), 600));
        let estimate = |user, gpus| estimator.estimate(&job(user, gpus, 90)).unwrap();
        assert!((estimate("ada", 4).value - 60.0).abs() < 1e-9);
        assert!((estimate("bob", 4).value - 600.0).abs() < 1e-9);
        assert_eq!(estimate("bob", 4).basis, "the last job of its size");
        assert_eq!(estimate("bob", 2).basis, "the median of the last 2 jobs");
    }
}
