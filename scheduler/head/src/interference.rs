//! How much jobs on one GPU slow each other down: what the head starts with, what the cluster observes, and
//! the models that the head trains from that.
//!
//! ```text
//! samples, misfits ─> samples ─> trainer (a thread) ─> InterferenceContext ─> planner
//!                                  │  ▲
//!                                  ▼  │
//!                                refit (a thread per fit) ─> model_versions (directories)
//! ```
//!
//! A newly fitted model becomes a version only if it is better than the current model, beyond noise, on sets
//! that neither has learned (`validation_split.rs`, `paired_comparison.rs`).
//! Models only influence which jobs share a GPU; memory is accounted for without
//! them.
//!
//! Start reading at `trainer.rs`. Simulations use the same trainer through `learner.rs`. `models.rs` needs
//! the feature `learned`; `no_models.rs` replaces it without.

mod base_predictor;
mod candidate;
mod digest;
mod guarded_model;
#[cfg(feature = "learned")]
mod learner;
mod model_versions;
#[cfg(feature = "learned")]
mod models;
#[cfg(not(feature = "learned"))]
mod no_models;
mod observation;
mod paired_comparison;
mod past_observations;
mod refit;
mod samples;
mod trainer;
mod validation_split;
mod version_file;

#[cfg(not(feature = "learned"))]
use no_models as models;

#[cfg(test)]
mod tests;

pub(crate) use base_predictor::BasePredictor;
#[cfg(feature = "learned")]
pub use learner::{InterferenceLearner, LearnerOptions, ModelAdapter};
pub(crate) use models::read_base_predictor;
pub(crate) use observation::Observation;
pub(crate) use past_observations::PastObservations;
pub(crate) use samples::{resolve_misfit, resolve_sample};
pub(crate) use trainer::{TrainerHandle, TrainerOptions, TrainingUpdate};
