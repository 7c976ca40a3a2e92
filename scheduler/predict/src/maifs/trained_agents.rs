//! Weights of the networks with everything that is needed to use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::Tensor;

use super::agents::NetworkAgents;
use super::feature_scales::FeatureScales;
use super::inference::{AgentInference, StoredTensors, WeightsError};
use super::shape::NetworkVariant;

/// Weights of the networks, with the scales of their features. Copies are cheap.
#[derive(Debug, Clone)]
pub struct TrainedAgents {
    pub(super) variant: NetworkVariant,
    pub(super) seed: u64,
    pub(super) scales: FeatureScales,
    pub(super) tensors: BTreeMap<String, Tensor>,
}

impl TrainedAgents {
    /// What they are a variant of.
    #[must_use]
    pub fn variant(&self) -> NetworkVariant {
        self.variant
    }

    /// The seed that they were trained with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Greedy agents with these weights.
    ///
    /// # Errors
    ///
    /// If a tensor is missing or has another shape.
    pub fn agents(&self) -> Result<NetworkAgents, WeightsError> {
        let inference = AgentInference::of(&StoredTensors(&self.tensors), self.variant, &self.scales)?;
        Ok(NetworkAgents { inference: Arc::new(inference), coordination: self.variant.coordination })
    }
}
