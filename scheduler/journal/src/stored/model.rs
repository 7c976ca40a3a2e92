//! The description of a model.

use std::collections::BTreeMap;

use cohabit_types as types;
use serde::{Deserialize, Serialize};
use serde_with::As;

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ModelDescription", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StoredModelDescription {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(with = "As::<Option<StoredModelFamily>>", default, skip_serializing_if = "Option::is_none")]
    family: Option<types::ModelFamily>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flops_per_sample: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_bytes: Option<u64>,
    #[serde(default)]
    operators: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epochs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
