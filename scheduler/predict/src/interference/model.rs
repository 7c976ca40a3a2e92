//! What every kind of learned model gives: training, weights that can be stored, and adaptation.

use std::collections::BTreeMap;

use candle_core::Tensor;
use cohabit_policy::interference::{Interference, MeasuredSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of model that can be trained.
pub trait ModelKind: std::fmt::Debug + Sync {
    /// As command lines call it.
    fn name(&self) -> &'static str;

    /// Trains a model. The same lesson gives the same model, bit for bit.
    ///
    /// `watch` is told of every epoch; closed forms have one.
    ///
    /// # Errors
    /// Where nothing can be learned from these measurements.
    fn train(
        &self,
        lesson: &TrainingData<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError>;

    /// The model that these are the weights of.
    ///
    /// # Errors
    /// Where they are of another kind, or not whole.
    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError>;
}

/// A trained model.
pub trait Model: Interference {
    /// All that is needed to restore it.
    fn weights(&self) -> Weights;

    /// The names of what it looks at in a member, for people.
    fn features(&self) -> Vec<String>;

    /// The same model after these further measurements, of jobs that it may never have seen.
    fn adapted(&self, observed: &[MeasuredSet]) -> Box<dyn Interference>;
}

/// What a model is to learn from.
#[derive(Debug, Clone, Copy)]
pub struct TrainingData<'a> {
    /// The measurements to learn from.
    pub train: &'a [MeasuredSet],
    /// Held back: tells when to stop. May be empty.
    pub held_back: &'a [MeasuredSet],
    /// Of everything that is drawn.
    pub seed: u64,
    /// At most so many epochs, for models that learn in epochs; as many as their kind takes without it.
    pub epochs: Option<usize>,
}

impl TrainingData<'_> {
    /// What is learned from by models that need nothing to stop by.
    #[must_use]
    pub fn all(&self) -> Vec<MeasuredSet> {
        self.train.iter().chain(self.held_back).cloned().collect()
    }
}

/// One epoch of a training: a point of the learning curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: usize,
    /// How many there will be at most.
    pub of: usize,
    /// Mean loss on what is learned from.
    pub loss: f64,
    /// Mean loss on what is held back.
    pub held_back_loss: Option<f64>,
}

/// What a model has learned.
#[derive(Debug, Default, Clone)]
pub struct Weights {
    /// Its numbers, by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// What is no number: names of configurations and GPUs, sizes, features with their scales.
    pub words: Value,
}

/// Nothing can be learned.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// No pair ran.
    #[error("there is nothing to learn from: no pair of jobs that ran is among the measurements")]
    NoPairs,
    /// The library of tensors refused.
    #[error("the training failed: {0}")]
    Tensors(#[from] candle_core::Error),
}

/// Weights that are not those of a whole model of the kind.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is no tensor of this name.
    #[error("the weights lack '{0}'")]
    MissingTensor(String),
    /// What is no number makes no sense.
    #[error("the description of the weights makes no sense: {0}")]
    ModelMetadata(#[from] serde_json::Error),
    /// The library of tensors refused.
    #[error("the weights make no sense: {0}")]
    Tensors(#[from] candle_core::Error),
}
