//! Interference: how much training jobs on one GPU slow each other down.
//!
//! Policies, analytic models and learned models share these types. Start with `colocation.rs` (a set of
//! co-located jobs, and what is expected of each) and `predictor.rs` (the trait of all predictors). Three
//! predictors need no training and live here: `analytic.rs`, by a formula; `measured.rs`, by a table of
//! measurements; `observed.rs`, which repeats what this cluster observed and asks another predictor about
//! the rest. Predictors that are trained are in `cohabit-predict`.

mod analytic;
mod build_member;
mod colocation;
mod colocation_history;
mod contention_metrics;
mod context;
mod footprints;
mod gpu_model;
mod measured;
mod observed;
mod observed_misfit;
mod observed_sample;
mod prediction_cache;
mod predictor;
mod slowdown_model;
mod solo_metrics_table;

pub use analytic::AnalyticInterference;
pub use build_member::build_member;
pub(crate) use colocation::LIKELY_TO_FIT;
pub use colocation::{
    ColocationEstimate, ColocationSet, Configuration, GpuKind, ModelFeatures, SetMember, SoloMetrics,
    UNKNOWN_UNCERTAINTY,
};
pub use colocation_history::{ColocationHistory, ObservedSet};
pub use contention_metrics::ContentionMetrics;
pub use context::InterferenceContext;
pub use footprints::{Certainty, Footprint, Footprints};
pub use gpu_model::{GPU_MODELS, GpuModel};
pub use measured::{MeasuredMember, MeasuredSet, MeasuredTable, SetOutcome};
pub use observed::ObservedInterference;
pub use observed_misfit::ObservedMisfit;
pub use observed_sample::ObservedSample;
pub(crate) use prediction_cache::{InternedMember, InternedSet, PredictionCache};
pub use predictor::Interference;
pub use slowdown_model::{MaxMinSharing, SlowdownModel};
pub use solo_metrics_table::SoloMetricsTable;

#[cfg(test)]
mod tests;
