//! The description of a trained model: the contents of `--model FILE.toml`.
//!
//! All of it is optional; the more there is, the better the predictions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A description of a model and of its training.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ModelDescription {
    /// For people, and for finding earlier runs of the same model.
    pub name: Option<String>,
    /// The broad kind.
    pub family: Option<ModelFamily>,
    /// Samples in one step of one rank.
    pub batch_size: Option<u64>,
    /// What it computes in: `fp32`, `bf16`.
    pub precision: Option<String>,
    /// Trainable parameters.
    pub parameters: Option<u64>,
    /// Floating-point operations to train on one sample.
    pub flops_per_sample: Option<f64>,
    /// Memory for activations of one step, in bytes.
    pub activation_bytes: Option<f64>,
    /// Input of one sample, in bytes.
    pub input_bytes: Option<u64>,
    /// How often each operator occurs.
    pub operators: BTreeMap<String, u64>,
    /// Training iterations.
    pub iterations: Option<u64>,
    /// Passes over the data set; with `samples` an alternative to `iterations`.
    pub epochs: Option<u64>,
    /// Size of the data set.
    pub samples: Option<u64>,
    /// Pipeline stages of parallel training.
    pub stages: Vec<PipelineStage>,
}

/// The broad kind of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelFamily {
    /// Convolutional.
    Cnn,
    /// Recurrent.
    Rnn,
    /// Attention.
    Transformer,
    /// Large embedding tables.
    Embedding,
    /// None of these.
    Other,
}

/// One stage of parallel training; a stage is replicated, each replica on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PipelineStage {
    /// Copies of this stage.
    pub replicas: u32,
    /// Computation of one replica in one iteration, in seconds.
    pub compute_seconds: f64,
    /// The same on devices of these models, where it differs.
    #[serde(default)]
    pub compute_seconds_on: BTreeMap<String, f64>,
    /// Sent to the next stage in one iteration, in bytes.
    #[serde(default)]
    pub activation_bytes: f64,
    /// Gradients of one replica in one iteration, in bytes.
    #[serde(default)]
    pub gradient_bytes: f64,
}

impl ModelDescription {
    /// Iterations as given, or from epochs, samples and batch size.
    #[must_use]
    pub fn total_iterations(&self) -> Option<u64> {
        let from_epochs = || {
            let steps_per_epoch = self.samples?.div_ceil(self.batch_size?.max(1));
            self.epochs?.checked_mul(steps_per_epoch)
        };
        self.iterations.or_else(from_epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_follow_from_epochs() {
        let model = ModelDescription {
            epochs: Some(3),
            samples: Some(100),
            batch_size: Some(32),
            ..Default::default()
        };
        assert_eq!(model.total_iterations(), Some(12));
        assert_eq!(ModelDescription { iterations: Some(5), ..model }.total_iterations(), Some(5));
    }
}
