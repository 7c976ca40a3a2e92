//! The random forest for one quantity: which jobs it is fitted to, and what it predicts.
//!
//! It predicts a correction of the anchor, and is fitted to corrections that are clipped at a factor: some
//! jobs take a hundred times as long as similar ones, and a mean that follows them is wrong for all others.
//! On the Philly trace this clipping lifts the forest above the recent median; README.md has the numbers.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use smartcore::ensemble::random_forest_regressor::{RandomForestRegressor, RandomForestRegressorParameters};
use smartcore::linalg::basic::matrix::DenseMatrix;

use crate::features::{ANCHOR_COLUMN, FEATURE_COUNT, FeatureRow};
use crate::history::History;

/// The number of jobs that it is fitted to.
const SAMPLE_SIZE: usize = 1_500;
/// A job that is older by this many jobs is half as likely to be drawn.
const HALF_LIFE: f64 = 1_500.0;
/// Corrections are clipped to a factor of e to the power of this, 1.65.
const MAX_LOG_CORRECTION: f32 = 0.5;

const TREE_COUNT: usize = 40;
const MAX_DEPTH: u16 = 5;
const MIN_SAMPLES_PER_LEAF: usize = 20;
/// The number of features that are tried for each split.
const FEATURES_PER_SPLIT: usize = 6;
const SEED: u64 = 0x5eed;

type Trees = RandomForestRegressor<f32, f32, DenseMatrix<f32>, Vec<f32>>;

/// A sample of jobs to fit a forest to, independent of the history.
#[derive(Debug, Clone)]
pub(crate) struct TrainingSample {
    rows: Vec<FeatureRow>,
    corrections: Vec<f32>,
}

/// A fitted forest.
#[derive(Debug)]
pub(crate) struct ForestModel {
    trees: Trees,
    /// The features that differed between the jobs of the sample.
    columns: Vec<usize>,
}

impl TrainingSample {
    /// Draws from the remembered jobs, newer ones with a higher probability; the same seed draws the same
    /// jobs.
    pub(crate) fn draw(history: &History, seed: u64) -> TrainingSample {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // The shortest of exponential waiting times with these rates are a weighted draw without replacement.
        let wait = |age: usize| -uniform(&mut random).ln() * (age as f64 / HALF_LIFE).exp2();
        let waits: Vec<f64> = (0..history.len()).map(wait).collect();
        let mut drawn: Vec<_> = waits.into_iter().zip(history.newest()).collect();
        drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
        drawn.truncate(SAMPLE_SIZE);
        let correction = |row: &FeatureRow, value: f64| {
            (value as f32 - row[ANCHOR_COLUMN]).clamp(-MAX_LOG_CORRECTION, MAX_LOG_CORRECTION)
        };
        TrainingSample {
            rows: drawn.iter().map(|(_, (row, _))| **row).collect(),
            corrections: drawn.iter().map(|(_, (row, value))| correction(row, *value)).collect(),
        }
    }

    /// Fits a forest; takes some tens of milliseconds. `None` for an empty sample.
    pub(crate) fn fit(self) -> Option<ForestModel> {
        let columns = varying_columns(&self.rows);
        let matrix = matrix(&self.rows, &columns)?;
        let parameters = RandomForestRegressorParameters::default()
            .with_n_trees(TREE_COUNT)
            .with_max_depth(MAX_DEPTH)
            .with_min_samples_leaf(MIN_SAMPLES_PER_LEAF)
            .with_m(FEATURES_PER_SPLIT)
            .with_seed(SEED);
        let trees = Trees::fit(&matrix, &self.corrections, parameters).ok()?;
        Some(ForestModel { trees, columns })
    }
}

impl ForestModel {
    /// The predicted difference between the logarithm of the quantity and the anchor.
    pub(crate) fn correction(&self, row: &FeatureRow) -> f64 {
        let one = matrix(std::slice::from_ref(row), &self.columns);
        let predicted = one.and_then(|one| self.trees.predict(&one).ok());
        predicted.and_then(|predicted| predicted.first().copied()).map_or(0.0, f64::from)
    }
}

/// The features that differ between these jobs; others allow no split. Always contains the anchor.
fn varying_columns(rows: &[FeatureRow]) -> Vec<usize> {
    let differs = |column: &usize| rows.iter().any(|row| row[*column] != rows[0][*column]);
    (0..FEATURE_COUNT).filter(|column| *column == ANCHOR_COLUMN || differs(column)).collect()
}

fn matrix(rows: &[FeatureRow], columns: &[usize]) -> Option<DenseMatrix<f32>> {
    let values: Vec<f32> = rows.iter().flat_map(|row| columns.iter().map(|column| row[*column])).collect();
    DenseMatrix::new(rows.len(), columns.len(), values, false).ok()
}

/// A uniform number in (0, 1).
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use cohabit_policy::JobFeatures;
    use cohabit_types::{Span, Time};

    use super::*;
    use crate::quantity::Quantity;

    /// Jobs that differ only in their hour; those before noon take a third less.
    fn history(jobs: u64) -> History {
        let mut history = History::of(Quantity::Runtime);
        for number in 0..jobs {
            let job = hourly(number);
            let value = if job.hour() < 12 { 4.8 } else { 5.2 };
            history.add(&job, job.submitted_at + Span::from_secs(1), value);
        }
        history
    }

    fn hourly(number: u64) -> JobFeatures {
        JobFeatures { submitted_at: Time::EPOCH + Span::from_secs(number * 3_600), ..JobFeatures::default() }
    }

    #[test]
    fn the_forest_corrects_the_anchor() {
        for jobs in [1_000, 1_006, 1_012, 1_018] {
            let (history, job) = (history(jobs), hourly(jobs));
            let model = TrainingSample::draw(&history, 1).fit().unwrap();
            let past = history.past(&job);
            let predicted = past.anchor() + model.correction(&history.row(&job, &past));
            let expected = if job.hour() < 12 { 4.8 } else { 5.2 };
            assert!((predicted - expected).abs() < 0.1, "{predicted} at hour {}", job.hour());
        }
    }

    #[test]
    fn the_same_seed_draws_and_fits_the_same() {
        let history = history(3_000);
        let (job, predicted) = (hourly(3_001), |seed| TrainingSample::draw(&history, seed).fit().unwrap());
        let row = history.row(&job, &history.past(&job));
        assert_eq!(predicted(1).correction(&row).to_bits(), predicted(1).correction(&row).to_bits());
        let anchors = |seed| TrainingSample::draw(&history, seed).rows;
        assert_ne!(anchors(1), anchors(2));
    }

    #[test]
    fn newer_jobs_are_drawn_more_often_and_none_twice() {
        let mut history = History::of(Quantity::Runtime);
        (0..10_000).for_each(|number| history.add(&hourly(number), Time::EPOCH, number as f64));
        let drawn = TrainingSample::draw(&history, 1);
        assert_eq!(drawn.rows.len(), SAMPLE_SIZE);
        let newest = history.newest().take(1_500).map(|(row, _)| row.map(f32::to_bits));
        let newest: std::collections::BTreeSet<_> = newest.collect();
        let of_newest = drawn.rows.iter().filter(|row| newest.contains(&row.map(f32::to_bits))).count();
        assert!((600..1_000).contains(&of_newest), "{of_newest}");
    }

    #[test]
    fn an_empty_sample_gives_no_forest() {
        assert!(TrainingSample::draw(&History::of(Quantity::Runtime), 1).fit().is_none());
    }
}
