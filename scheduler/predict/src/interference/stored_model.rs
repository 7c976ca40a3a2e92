//! A trained model in a directory: its weights as safetensors, and a card that describes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use candle_core::Device;
use cohabit_policy::interference::{Configuration, MeasuredSet, SetMember, SetOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evaluate::PredictionMetrics;
use super::kinds::{UnknownModelKind, kind_by_name};
use super::measurements::MeasurementFormat;
use super::model::{Epoch, Model, RestoreError, Weights};
use super::usage_source::UsageSources;
use crate::stored_files::{StoredFileError, create_directory, read, write};

const WEIGHTS: &str = "weights.safetensors";
const CARD: &str = "card.json";
/// The version of the format that is written. Models of version 1 add up logarithms of slowdowns and have one
/// calibration for all GPUs; both are still read.
const SCHEMA: u32 = 2;
const EARLIEST_SCHEMA: u32 = 1;
/// The version of the document that scripts read; independent of the format of the files.
const DOCUMENT_SCHEMA: u32 = 1;

/// A model with its card.
#[derive(Debug)]
pub struct StoredModel {
    /// The card.
    pub card: ModelCard,
    /// The model.
    pub model: Box<dyn Model>,
}

/// What people should know of a model before they use it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    /// Version of the format.
    pub schema: u32,
    /// The kind of model.
    pub model: String,
    /// The version of Cohabit that wrote it.
    pub cohabit: String,
    /// The command that trained it.
    pub command: String,
    /// The seed of all random draws.
    pub seed: u64,
    /// The training data.
    pub data: DatasetSummary,
    /// The features.
    pub features: Vec<String>,
    /// Where predictions of memory and utilization come from.
    #[serde(default)]
    pub usage: UsageSources,
    /// Accuracy on the training data.
    pub training: PredictionMetrics,
    /// Accuracy of models trained without the held-out sets, configurations, models or GPUs, for each kind of
    /// split.
    pub held_out: Vec<HeldOutMetrics>,
    /// The learning curve.
    pub curve: Vec<Epoch>,
    /// The metadata of the weights.
    #[serde(rename = "words", default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
}

/// A summary of the measurements that a model was trained on.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetSummary {
    /// The file.
    pub file: String,
    /// Its format.
    pub format: String,
    /// Number of sets of two or more.
    pub sets: usize,
    /// Number of their members that ran.
    pub rows: usize,
    /// The GPUs.
    pub gpus: Vec<String>,
    /// Number of configurations.
    pub configurations: usize,
}

/// Accuracy on data that such a model has never seen.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOutMetrics {
    /// `sets`, `configurations`, `models` or `gpus`.
    pub split: String,
    /// Number of sets with each newcomer on each GPU that were observed first.
    pub observed: usize,
    /// The metrics.
    pub figures: PredictionMetrics,
}

/// Why a model cannot be stored or loaded.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] StoredFileError),
    /// The card is invalid.
    #[error("{}: {source}", path.display())]
    ModelCard {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The card has another version of the format.
    #[error("{} has format version {schema}, but this program reads versions {EARLIEST_SCHEMA} to {SCHEMA}: use the version of Cohabit that wrote it", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The version in the card.
        schema: u32,
    },
    /// The kind of model is unknown.
    #[error(transparent)]
    Kind(#[from] UnknownModelKind),
    /// The weights are invalid.
    #[error("{}: {source}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: RestoreError,
    },
    /// The weights cannot be serialised.
    #[error("cannot serialise the weights: {0}")]
    Unwritable(#[from] safetensors::SafeTensorError),
}

impl StoredModel {
    /// Writes the model into a directory, which is created if needed; files of a model in it are replaced.
    ///
    /// # Errors
    ///
    /// If the directory or a file cannot be written.
    pub fn save(mut self, folder: &Path) -> Result<(), StoreError> {
        let Weights { tensors, metadata } = self.model.weights();
        self.card.metadata = metadata;
        self.card.schema = SCHEMA;
        create_directory(folder)?;
        write(&folder.join(WEIGHTS), &safetensors::serialize(&tensors, None)?)?;
        let path = folder.join(CARD);
        let card = serde_json::to_vec_pretty(&self.card)
            .map_err(|source| StoreError::ModelCard { path: path.clone(), source })?;
        Ok(write(&path, &card)?)
    }

    /// Loads a model that [`StoredModel::save`] wrote.
    ///
    /// # Errors
    ///
    /// If a file is missing, damaged or of another version.
    pub fn load(folder: &Path) -> Result<StoredModel, StoreError> {
        let path = folder.join(WEIGHTS);
        let weights = read(&path);
        StoredModel::of(ModelCard::load(folder)?, &weights?, &path)
    }

    /// Restores the model from a card and the bytes of its weights, read from `path`.
    pub(super) fn of(card: ModelCard, weights: &[u8], path: &Path) -> Result<StoredModel, StoreError> {
        let kind = kind_by_name(&card.model)?;
        let unusable = |source: RestoreError| StoreError::Weights { path: path.to_owned(), source };
        let tensors = candle_core::safetensors::load_buffer(weights, &Device::Cpu);
        let tensors = tensors.map_err(|error| unusable(error.into()))?.into_iter().collect();
        let weights = Weights { tensors, metadata: card.metadata.clone() };
        let model = kind.restore(&weights).map_err(unusable)?;
        Ok(StoredModel { card, model })
    }
}

impl ModelCard {
    /// The card without the metadata of the weights, for people and scripts.
    #[must_use]
    pub fn without_metadata(&self) -> ModelCard {
        ModelCard { schema: DOCUMENT_SCHEMA, metadata: Value::Null, ..self.clone() }
    }

    /// Loads the card alone.
    ///
    /// # Errors
    ///
    /// As [`StoredModel::load`].
    pub fn load(folder: &Path) -> Result<ModelCard, StoreError> {
        let path = folder.join(CARD);
        ModelCard::of(&read(&path)?, &path)
    }

    /// Parses a card from bytes, read from `path`.
    pub(super) fn of(bytes: &[u8], path: &Path) -> Result<ModelCard, StoreError> {
        let unreadable = |source| StoreError::ModelCard { path: path.to_owned(), source };
        let card: ModelCard = serde_json::from_slice(bytes).map_err(unreadable)?;
        let ModelCard { schema, .. } = card;
        let is_known = (EARLIEST_SCHEMA..=SCHEMA).contains(&schema);
        if is_known { Ok(card) } else { Err(StoreError::Schema { path: path.to_owned(), schema }) }
    }
}

impl DatasetSummary {
    /// Summarises these measurements.
    #[must_use]
    pub fn of(file: String, format: MeasurementFormat, measured: &[MeasuredSet]) -> DatasetSummary {
        let together = || measured.iter().filter(|it| it.set.members.len() > 1);
        let ran = |it: &MeasuredSet| match &it.outcome {
            SetOutcome::Ran(observed) => observed.len(),
            SetOutcome::DidNotFit => 0,
        };
        let gpus: BTreeSet<&str> = measured.iter().map(|it| it.set.gpu.name()).collect();
        let members = measured.iter().flat_map(|it| &it.set.members);
        let configurations: BTreeSet<Configuration> = members.map(SetMember::configuration).collect();
        DatasetSummary {
            file,
            format: format.to_string(),
            sets: together().count(),
            rows: together().map(ran).sum(),
            gpus: gpus.into_iter().map(str::to_owned).collect(),
            configurations: configurations.len(),
        }
    }
}
