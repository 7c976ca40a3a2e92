//! What every kind of learned model provides: training, weights that can be stored, and adaptation.

use std::collections::BTreeMap;

use candle_core::Tensor;
use cohabit_policy::interference::{Interference, MeasuredSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::usage_source::UsageSources;

/// A kind of model that can be trained.
pub trait ModelKind: std::fmt::Debug + Sync {
    /// The name on command lines.
    fn name(&self) -> &'static str;

    /// The largest number of epochs by default; `None` for models in closed form.
    fn epochs(&self) -> Option<usize> {
        None
    }

    /// Trains a model. The same data gives the same model, bit for bit.
    ///
    /// `watch` is called after every epoch; models in closed form have one.
    ///
    /// # Errors
    ///
    /// If nothing can be learned from these measurements.
    fn train(
        &self,
        data: &TrainingData<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError>;

    /// Restores the model with these weights.
    ///
    /// # Errors
    ///
    /// If they belong to another kind or are incomplete.
    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError>;
}

/// A trained model.
pub trait Model: Interference {
    /// Everything that is needed to restore the model.
    fn weights(&self) -> Weights;

    /// The names of the features of a member, for people.
    fn features(&self) -> Vec<String>;

    /// Where predictions of memory and utilization come from.
    fn usage_sources(&self) -> UsageSources {
        UsageSources::default()
    }

    /// The same model after further measurements, possibly of jobs that it has never seen.
    fn adapted(&self, observed: &[MeasuredSet]) -> Box<dyn Interference>;
}

/// The data that a model is trained on.
#[derive(Debug, Clone, Copy)]
pub struct TrainingData<'a> {
    /// The measurements to learn from.
    pub train: &'a [MeasuredSet],
    /// Held back to decide when to stop; may be empty.
    pub held_back: &'a [MeasuredSet],
    /// The seed of all random draws.
    pub seed: u64,
    /// The largest number of epochs for models that learn in epochs; `None` for the default of the kind.
    pub epochs: Option<usize>,
}

impl TrainingData<'_> {
    /// All measurements, for models that do not need to decide when to stop.
    #[must_use]
    pub fn all(&self) -> Vec<MeasuredSet> {
        self.train.iter().chain(self.held_back).cloned().collect()
    }
}

/// One epoch of a training: a point of the learning curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// The largest number of epochs.
    pub of: usize,
    /// Mean loss on the training data.
    pub loss: f64,
    /// Mean loss on the held-back data.
    pub held_back_loss: Option<f64>,
}

/// What a model has learned.
#[derive(Debug, Default, Clone)]
pub struct Weights {
    /// Tensors by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// Everything else: names of configurations and GPUs, sizes, features with their scales.
    pub metadata: Value,
}

/// Why a training failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// No pair ran.
    #[error("nothing to learn from: the measurements contain no pair of jobs that ran")]
    NoPairs,
    /// The tensor library reported an error.
    #[error("training failed: {0}")]
    Tensors(#[from] candle_core::Error),
}

/// Why weights cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A tensor is missing or has the wrong shape.
    #[error("the weights have no valid tensor '{0}'")]
    MissingTensor(String),
    /// The metadata is invalid.
    #[error("invalid metadata of the weights: {0}")]
    ModelMetadata(#[from] serde_json::Error),
    /// The tensor library reported an error.
    #[error("invalid weights: {0}")]
    Tensors(#[from] candle_core::Error),
}
