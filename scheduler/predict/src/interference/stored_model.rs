//! A trained model in a folder: its weights as safetensors, and beside them a card that says what it is.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use candle_core::Device;
use cohabit_policy::interference::{Configuration, MeasuredSet, SetMember, SetOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::evaluate::PredictionMetrics;
use super::kinds::{UnknownModelKind, kind_by_name};
use super::measurements::MeasurementFormat;
use super::model::{Epoch, Model, RestoreError, Weights};

const WEIGHTS: &str = "weights.safetensors";
const CARD: &str = "card.json";
const SCHEMA: u32 = 1;

/// A model and what is to tell of it.
#[derive(Debug)]
pub struct StoredModel {
    /// What is to tell of it.
    pub card: ModelCard,
    /// The model.
    pub model: Box<dyn Model>,
}

/// What people should know of a model before they use it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCard {
    /// Version of this form.
    pub schema: u32,
    /// Its kind.
    pub model: String,
    /// The version of this program.
    pub cohabit: String,
    /// How it was trained, so that it can be done again.
    pub command: String,
    /// Of everything that was drawn.
    pub seed: u64,
    /// What it was trained on.
    pub data: DatasetSummary,
    /// What it looks at.
    pub features: Vec<String>,
    /// How good it is on what it was trained on.
    pub training: PredictionMetrics,
    /// How good one trained without them is on sets, configurations or models held out, by what was held out.
    pub held_out: Vec<HeldOutMetrics>,
    /// The learning curve.
    pub curve: Vec<Epoch>,
    /// What belongs to the weights and is no number.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub words: Value,
}

/// The measurements that a model was trained on.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetSummary {
    /// The file.
    pub file: String,
    /// Its format.
    pub format: String,
    /// Sets of two or more.
    pub sets: usize,
    /// Members of them that ran.
    pub rows: usize,
    /// The GPUs.
    pub gpus: Vec<String>,
    /// Configurations.
    pub configurations: usize,
}

/// How good such a model is on what it never saw.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOutMetrics {
    /// `sets`, `configurations` or `models`.
    pub split: String,
    /// Sets with each newcomer on each GPU that were observed first.
    pub observed: usize,
    /// How good.
    pub figures: PredictionMetrics,
}

/// What could not be done with a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// To create a directory.
    Create,
    /// To read a file.
    Read,
    /// To write a file.
    Write,
}

impl fmt::Display for FileAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileAction::Create => "create",
            FileAction::Read => "read",
            FileAction::Write => "write",
        })
    }
}

/// A folder that cannot be written, or holds no model.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file refused.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was to be done with it.
        action: FileAction,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The card makes no sense.
    #[error("{}: {source}", path.display())]
    ModelCard {
        /// Which.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The card is of a later form.
    #[error("{} is of form {schema}, and this program knows {SCHEMA}: use the program that wrote it", path.display())]
    Schema {
        /// Which.
        path: PathBuf,
        /// What it says.
        schema: u32,
    },
    /// The kind of the model is unknown.
    #[error(transparent)]
    Kind(#[from] UnknownModelKind),
    /// The weights make no sense.
    #[error("{}: {source}", path.display())]
    Weights {
        /// Which.
        path: PathBuf,
        /// Why.
        source: RestoreError,
    },
    /// The weights cannot be written.
    #[error("the weights cannot be written: {0}")]
    Unwritable(#[from] safetensors::SafeTensorError),
}

impl StoredModel {
    /// Writes the model into a folder, which is made if need be. What it held before is replaced.
    ///
    /// # Errors
    /// Where the folder or a file refuses.
    pub fn save(mut self, folder: &Path) -> Result<(), StoreError> {
        let Weights { tensors, words } = self.model.weights();
        self.card.words = words;
        self.card.schema = SCHEMA;
        fs::create_dir_all(folder).map_err(|source| file(FileAction::Create, folder, source))?;
        write(&folder.join(WEIGHTS), &safetensors::serialize(&tensors, None)?)?;
        let path = folder.join(CARD);
        let card = serde_json::to_vec_pretty(&self.card)
            .map_err(|source| StoreError::ModelCard { path: path.clone(), source })?;
        write(&path, &card)
    }

    /// Reads what [`StoredModel::save`] wrote.
    ///
    /// # Errors
    /// Where a file is not there, is damaged, or is of another version.
    pub fn load(folder: &Path) -> Result<StoredModel, StoreError> {
        let path = folder.join(WEIGHTS);
        let weights = fs::read(&path).map_err(|source| file(FileAction::Read, &path, source));
        StoredModel::of(ModelCard::load(folder)?, &weights?, &path)
    }

    /// The model of a card and of the bytes of its weights, which lie at `path`.
    pub(super) fn of(card: ModelCard, weights: &[u8], path: &Path) -> Result<StoredModel, StoreError> {
        let kind = kind_by_name(&card.model)?;
        let unusable = |source: RestoreError| StoreError::Weights { path: path.to_owned(), source };
        let tensors = candle_core::safetensors::load_buffer(weights, &Device::Cpu);
        let tensors = tensors.map_err(|error| unusable(error.into()))?.into_iter().collect();
        let weights = Weights { tensors, words: card.words.clone() };
        let model = kind.restore(&weights).map_err(unusable)?;
        Ok(StoredModel { card, model })
    }
}

impl ModelCard {
    /// The card without what belongs to the weights, for people and scripts.
    #[must_use]
    pub fn told(&self) -> ModelCard {
        ModelCard { schema: SCHEMA, words: Value::Null, ..self.clone() }
    }

    /// Reads the card alone.
    ///
    /// # Errors
    /// As [`StoredModel::load`].
    pub fn load(folder: &Path) -> Result<ModelCard, StoreError> {
        let path = folder.join(CARD);
        ModelCard::of(&fs::read(&path).map_err(|source| file(FileAction::Read, &path, source))?, &path)
    }

    /// The card of these bytes, which lie at `path`.
    pub(super) fn of(bytes: &[u8], path: &Path) -> Result<ModelCard, StoreError> {
        let unreadable = |source| StoreError::ModelCard { path: path.to_owned(), source };
        let card: ModelCard = serde_json::from_slice(bytes).map_err(unreadable)?;
        let ModelCard { schema, .. } = card;
        if schema == SCHEMA { Ok(card) } else { Err(StoreError::Schema { path: path.to_owned(), schema }) }
    }
}

impl DatasetSummary {
    /// What is to tell of these measurements.
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

/// Written beside and renamed, so that a folder in use never holds half a file.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let unfinished = path.with_added_extension("unfinished");
    fs::write(&unfinished, bytes)
        .and_then(|()| fs::rename(&unfinished, path))
        .map_err(|source| file(FileAction::Write, path, source))
}

fn file(action: FileAction, path: &Path, source: io::Error) -> StoreError {
    StoreError::File { action, path: path.to_owned(), source }
}
