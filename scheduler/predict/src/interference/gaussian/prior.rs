//! The prior of a Gaussian process, in squares of logarithms of slowdowns.

use serde::{Deserialize, Serialize};

use super::known_jobs::SimilarityWeights;

/// The variances of slowdowns, and what makes jobs similar.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Prior {
    /// Variance common to all jobs on a GPU.
    pub(super) common: f64,
    /// Variance of the sensitivity of a job to any partner.
    pub(super) sensitivity: SimilarityWeights,
    /// Variance of the pressure of a job on any partner.
    pub(super) pressure: SimilarityWeights,
    /// Similarity of jobs in their interaction with particular partners; the weights add up to at most 1.
    pub(super) partners: SimilarityWeights,
    /// Variance of the interaction of particular jobs on one GPU model.
    pub(super) pair_on_gpu: f64,
    /// Variance of their interaction on any GPU.
    pub(super) pair: f64,
    /// Variance of repeated measurements.
    pub(super) noise: f64,
    /// Correlation between different GPU models.
    pub(super) other_gpu: f64,
    /// Correlation between different ways of sharing.
    pub(super) other_sharing: f64,
}

const ALONE: SimilarityWeights =
    SimilarityWeights { configuration: 0.01, model: 0.05, family: 0.03, numbers: 0.05 };

/// Sensitivity of one job plus pressure of the other.
pub(super) const ADDITIVE: Prior = Prior {
    common: 0.05,
    sensitivity: ALONE,
    pressure: ALONE,
    partners: SimilarityWeights { configuration: 0.2, model: 1.0, family: 0.3, numbers: 1.0 },
    pair_on_gpu: 0.0,
    pair: 0.0,
    noise: 0.02,
    other_gpu: 0.4,
    other_sharing: 0.4,
};

/// The same with interactions of pairs.
pub(super) const WITH_PAIRS: Prior = Prior { pair_on_gpu: 0.02, pair: 0.01, noise: 0.003, ..ADDITIVE };

/// The prior of a model's errors for jobs that it has not seen.
pub(super) const ERRORS: Prior = Prior { common: 0.005, ..WITH_PAIRS };
