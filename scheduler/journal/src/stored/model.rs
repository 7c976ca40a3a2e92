//! The description of a model.

use std::collections::BTreeMap;

use cohabit_types as types;
use serde::{Deserialize, Serialize};
use serde_with::As;

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ModelDescription", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StoredModelDescription {
    name: Option<String>,
    #[serde(with = "As::<Option<StoredModelFamily>>", default)]
    family: Option<types::ModelFamily>,
    batch_size: Option<u64>,
    precision: Option<String>,
    parameters: Option<u64>,
    flops_per_sample: Option<f64>,
    activation_bytes: Option<f64>,
    input_bytes: Option<u64>,
    #[serde(default)]
    operators: BTreeMap<String, u64>,
    iterations: Option<u64>,
    epochs: Option<u64>,
    samples: Option<u64>,
    #[serde(with = "As::<Vec<StoredPipelineStage>>", default)]
    stages: Vec<types::PipelineStage>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ModelFamily", rename_all = "lowercase")]
pub(crate) enum StoredModelFamily {
    Cnn,
    Rnn,
    Transformer,
    Embedding,
    Other,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::PipelineStage", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StoredPipelineStage {
    replicas: u32,
    compute_seconds: f64,
    #[serde(default)]
    compute_seconds_on: BTreeMap<String, f64>,
    #[serde(default)]
    activation_bytes: f64,
    #[serde(default)]
    gradient_bytes: f64,
}

shape_of! {
    StoredModelDescription => types::ModelDescription,
    StoredModelFamily => types::ModelFamily,
    StoredPipelineStage => types::PipelineStage,
}
