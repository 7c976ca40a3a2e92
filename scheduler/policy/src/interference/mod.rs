//! Interference: how much training jobs on one GPU slow each other down.
//!
//! The words that policies, laws and learned models share. A law that needs no learning lives here; models
//! that learn are in `cohabit-predict`.

mod asked;
mod build_member;
mod co_location;
mod contention;
mod experience;
mod experienced;
mod footprints;
mod gpu_model;
mod knowledge;
mod law;
mod law_of_gpus;
mod measured;
mod solo_book;

use std::sync::Arc;

pub(crate) use asked::{InternedMember, InternedSet, PredictionCache};
pub use build_member::build_member;
pub use co_location::{
    ColocationEstimate, ColocationSet, Configuration, GpuKind, ModelFeatures, SetMember, SoloMetrics,
    UNKNOWN_UNCERTAINTY,
};
pub use contention::ContentionMetrics;
pub use experience::{ColocationHistory, ObservedSample, ObservedSet};
pub use experienced::ObservedInterference;
pub use footprints::{Certainty, Footprint, Footprints};
pub use gpu_model::{GPU_MODELS, GpuModel};
pub use knowledge::{DEFAULT_MAX_SLOWDOWN, InterferenceContext};
pub use law::{MaxMinSharing, SlowdownModel};
pub use law_of_gpus::AnalyticInterference;
pub use measured::{MeasuredMember, MeasuredSet, MeasuredTable, SetOutcome};
pub use solo_book::SoloMetricsTable;

/// Says what becomes of jobs that share a GPU.
///
/// For every implementation: a set of one is not slowed; the answer for a member does not depend on the order
/// of the others; whatever is unknown widens the uncertainty and is never an error.
pub trait Interference: std::fmt::Debug + Send + Sync {
    /// What becomes of the members of each set, in their order. Sets are asked for together because models
    /// answer a batch much faster than one by one.
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>>;

    /// How much every member of each set contends for what, completed where it was not measured. None where
    /// it does not look at that, or knows nothing of the kind.
    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        let _ = sets;
        None
    }

    /// Who predicts what this one only repeats, for it was measured: so that people can compare the two. None
    /// where it asks nobody else.
    fn base(&self) -> Option<Arc<dyn Interference>> {
        None
    }
}

#[cfg(test)]
mod tests;
