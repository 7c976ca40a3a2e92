//! What a process believes before it has seen anything, in squares of logarithms of slowdowns.

use serde::{Deserialize, Serialize};

use super::known_jobs::SimilarityWeights;

/// How far slowdowns lie apart, and what makes them alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Prior {
    /// All jobs on a GPU together.
    pub(super) common: f64,
    /// How much a job suffers from whatever partner.
    pub(super) sensitivity: SimilarityWeights,
    /// How much a job makes whatever partner suffer.
    pub(super) pressure: SimilarityWeights,
    /// How alike jobs are when it comes to certain partners; of no more weight than 1 together.
    pub(super) partners: SimilarityWeights,
    /// What certain jobs do to certain partners on one make of GPU.
    pub(super) pair_on_gpu: f64,
    /// The same on whatever GPU.
    pub(super) pair: f64,
    /// Measurements of the same.
    pub(super) noise: f64,
    /// Part of all this that other GPUs tell.
    pub(super) other_gpu: f64,
    /// Part that sets that share the GPU otherwise tell.
    pub(super) other_sharing: f64,
}

const ALONE: SimilarityWeights =
    SimilarityWeights { configuration: 0.01, model: 0.05, family: 0.03, numbers: 0.05 };

/// How much one job suffers, plus how much the other makes suffer.
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

/// And what certain jobs do to certain partners.
pub(super) const WITH_PAIRS: Prior = Prior { pair_on_gpu: 0.02, pair: 0.01, noise: 0.003, ..ADDITIVE };

/// What a model got wrong of jobs that it had not seen.
pub(super) const ERRORS: Prior = Prior { common: 0.005, ..WITH_PAIRS };
