//! Neural networks that learn interference: graph attention and dense ones.
//!
//! `feature_encoder` encodes a set as numbers and `batch` as tensors; a [`network::Network`] predicts;
//! `inference` has the same networks in plain Rust, for deciding;
//! `usage_heads` adds outputs for memory and utilization to one, if the measurements have them;
//! `training` trains one network, `ensemble_training` several that predict together as an `ensemble`;
//! `ensemble_weights` stores them.

mod batch;
mod columns;
mod e_ggat;
mod e_ggat_plus;
mod e_ggat_plus_shape;
mod ensemble;
mod ensemble_training;
mod ensemble_weights;
mod feature_encoder;
mod huber;
mod iapp;
mod iasp;
mod inference;
mod kind;
mod layers;
mod metric_importance;
mod network;
mod pair_table;
mod row_network;
mod scales;
mod single_thread;
#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;
mod training;
mod usage_heads;
mod usage_outputs;
mod usage_targets;
#[cfg(test)]
mod usage_tests;

use self::e_ggat::EGgat;
use self::e_ggat_plus::EGgatPlus;
use self::iapp::Iapp;
use self::kind::NetworkKind;
use super::model::ModelKind;

/// E-GGAT as released.
pub(super) const E_GGAT_KIND: &dyn ModelKind = &NetworkKind::<EGgat>::new();
/// E-GGAT repaired, on top of the Gaussian process.
pub(super) const E_GGAT_PLUS_KIND: &dyn ModelKind = &NetworkKind::<EGgatPlus>::new();
/// IAPP, with IASP inside.
pub(super) const IAPP_KIND: &dyn ModelKind = &NetworkKind::<Iapp>::new();
