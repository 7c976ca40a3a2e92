//! Trained agents in a directory: their weights as safetensors, and a card that describes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use cohabit_policy::maifs::LEVELS;
use serde::{Deserialize, Serialize};

use super::agents::NetworkAgents;
use super::feature_scales::FeatureScales;
use super::inference::WeightsError;
use super::shape::{NetworkShape, NetworkVariant};
use super::trained_agents::TrainedAgents;
use crate::stored_files::{StoredFileError, create_directory, read, write};

const WEIGHTS: &str = "agents.safetensors";
const CARD: &str = "card.json";
/// The name of the format, so that a card of another kind of model is recognised.
const FORMAT: &str = "cohabit-maifs-agents";
/// The version of the format that is written and read.
const SCHEMA: u32 = 1;

/// Trained agents with their card.
#[derive(Debug, Clone)]
pub struct StoredAgents {
    /// The card.
    pub card: AgentsCard,
    /// The weights.
    pub trained: TrainedAgents,
}

/// What people should know of trained agents before they use them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentsCard {
    /// The name of the format.
    pub format: String,
    /// The version of the format.
    pub schema: u32,
    /// The version of Cohabit that wrote it.
    pub cohabit: String,
    /// The command that trained them.
    pub command: String,
    /// The seed of all random draws.
    pub seed: u64,
    /// The sizes of the networks.
    pub shape: NetworkShape,
    /// Whether agents attend to each other.
    pub attention: bool,
    /// How agents agree on a joint action: `dynamic`, `none`, `full` or `single`.
    pub coordination: String,
    /// The scales of the features.
    pub scales: FeatureScales,
    /// What they were trained on.
    pub training: AgentsTraining,
    /// Figures on the validation workloads, by name, such as `mean_jct_seconds`.
    pub validation: BTreeMap<String, f64>,
    /// A digest of the weights, as hexadecimal digits: tells damaged or mixed up files.
    pub digest: String,
}

/// What agents were trained on.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentsTraining {
    /// The clusters, as given on the command line.
    pub clusters: Vec<String>,
    /// The workloads: traces with their parts, or how they were drawn.
    pub workloads: Vec<String>,
    /// The resource sensitivities, by the names of the models.
    pub sensitivities: Vec<String>,
    /// K: the number of places in the window of waiting jobs.
    pub window: usize,
    /// The number of episodes of the teacher that were imitated.
    pub taught_episodes: u64,
    /// The number of episodes of Q-learning.
    pub episodes: u64,
    /// The number of updates of Q-learning.
    pub updates: u64,
}

/// Why agents cannot be stored or loaded.
#[derive(Debug, thiserror::Error)]
pub enum AgentsStoreError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] StoredFileError),
    /// The card is invalid.
    #[error("{} is not a card of MAIFS agents ({source}): give the directory that `cohabit policy train` wrote", path.display())]
    Card {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The card belongs to something else.
    #[error("{} describes '{format}' instead of '{FORMAT}': give the directory that `cohabit policy train` wrote", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The name in the card.
        format: String,
    },
    /// The card has another version of the format.
    #[error("{} has format version {schema}, but this program reads version {SCHEMA}: use the version of Cohabit that wrote it, or train the agents again", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The version in the card.
        schema: u32,
    },
    /// The networks have other sizes.
    #[error("{} is for networks of other sizes than those of this program: use the version of Cohabit that wrote it, or train the agents again", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
    },
    /// Something in the card cannot be used.
    #[error("{}: {problem}: train the agents again", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The weights are not those of the card.
    #[error("{} is damaged or belongs to another card: copy both files again, or train the agents again", path.display())]
    Digest {
        /// The file.
        path: PathBuf,
    },
    /// The weights cannot be serialised.
    #[error("cannot serialise the weights: {0}")]
    Unwritable(#[from] safetensors::SafeTensorError),
}

impl StoredAgents {
    /// Agents with a new card.
    #[must_use]
    pub fn new(
        trained: TrainedAgents,
        command: String,
        training: AgentsTraining,
        validation: BTreeMap<String, f64>,
    ) -> StoredAgents {
        let card = AgentsCard {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            cohabit: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            seed: trained.seed,
            shape: NetworkShape::of_levels(trained.variant.levels),
            attention: trained.variant.attention,
            coordination: trained.variant.coordination.as_str().to_owned(),
            scales: trained.scales.clone(),
            training,
            validation,
            digest: String::new(),
        };
        StoredAgents { card, trained }
    }

    /// Writes the agents into a directory, which is created if needed; files of agents in it are replaced.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, or a weight is not finite.
    pub fn save(mut self, folder: &Path) -> Result<(), AgentsStoreError> {
        let (weights, card) = (folder.join(WEIGHTS), folder.join(CARD));
        check_finite(&self.trained.tensors, &weights)?;
        let bytes = safetensors::serialize(&self.trained.tensors, None)?;
        self.card.digest = digest(&bytes);
        create_directory(folder)?;
        write(&weights, &bytes)?;
        let text = serde_json::to_vec_pretty(&self.card)
            .map_err(|source| AgentsStoreError::Card { path: card.clone(), source })?;
        Ok(write(&card, &text)?)
    }

    /// Loads agents that [`StoredAgents::save`] wrote.
    ///
    /// # Errors
    ///
    /// If a file is missing, damaged, or of another version or shape.
    pub fn load(folder: &Path) -> Result<StoredAgents, AgentsStoreError> {
        let card = AgentsCard::load(folder)?;
        let path = folder.join(WEIGHTS);
        StoredAgents::of(card, &read(&path)?, path, &folder.join(CARD))
    }

    /// Agents with this card and these weights, which come from these files.
    ///
    /// # Errors
    ///
    /// If the weights are damaged, or of another card or shape.
    pub(super) fn of(
        card: AgentsCard,
        weights: &[u8],
        path: PathBuf,
        card_path: &Path,
    ) -> Result<StoredAgents, AgentsStoreError> {
        if digest(weights) != card.digest {
            return Err(AgentsStoreError::Digest { path });
        }
        let tensors = candle_core::safetensors::load_buffer(weights, &Device::Cpu)
            .map_err(|error| unusable(&path, &error))?;
        let tensors: BTreeMap<String, Tensor> = tensors.into_iter().collect();
        check_finite(&tensors, &path)?;
        let variant = card.variant(card_path)?;
        let trained = TrainedAgents { variant, seed: card.seed, scales: card.scales.clone(), tensors };
        trained.agents().map_err(|error| unusable(&path, &error))?;
        Ok(StoredAgents { card, trained })
    }

    /// Greedy agents.
    ///
    /// # Errors
    ///
    /// If a tensor is missing or has another shape; not after [`StoredAgents::load`].
    pub fn agents(&self) -> Result<NetworkAgents, WeightsError> {
        self.trained.agents()
    }
}

impl AgentsCard {
    /// Loads the card alone.
    ///
    /// # Errors
    ///
    /// As [`StoredAgents::load`].
    pub fn load(folder: &Path) -> Result<AgentsCard, AgentsStoreError> {
        let path = folder.join(CARD);
        AgentsCard::of(&read(&path)?, path)
    }

    /// The card with this text, which comes from this file.
    ///
    /// # Errors
    ///
    /// If it is no card, or one of another version or shape.
    pub(super) fn of(bytes: &[u8], path: PathBuf) -> Result<AgentsCard, AgentsStoreError> {
        let invalid = |source| AgentsStoreError::Card { path: path.clone(), source };
        // Cards of another format or version may lack fields.
        let Header { format, schema } = serde_json::from_slice(bytes).map_err(invalid)?;
        if format != FORMAT {
            return Err(AgentsStoreError::Format { path, format });
        }
        if schema != SCHEMA {
            return Err(AgentsStoreError::Schema { path, schema });
        }
        let card: AgentsCard = serde_json::from_slice(bytes).map_err(invalid)?;
        if card.shape != NetworkShape::of_levels(card.shape.levels)
            || ![1, LEVELS].contains(&card.shape.levels)
        {
            return Err(AgentsStoreError::Shape { path });
        }
        if !card.scales.are_usable() {
            return Err(unusable(&path, &"the scales of the features are incomplete or not finite"));
        }
        Ok(card)
    }

    fn variant(&self, path: &Path) -> Result<NetworkVariant, AgentsStoreError> {
        let coordination = self.coordination.parse().map_err(|error| unusable(path, &error))?;
        Ok(NetworkVariant { levels: self.shape.levels, attention: self.attention, coordination })
    }
}

/// The fields that every version of the format has.
#[derive(Debug, Deserialize)]
struct Header {
    #[serde(default)]
    format: String,
    schema: u32,
}

fn unusable(path: &Path, problem: &impl ToString) -> AgentsStoreError {
    AgentsStoreError::Unusable { path: path.to_owned(), problem: problem.to_string() }
}

fn check_finite(tensors: &BTreeMap<String, Tensor>, path: &Path) -> Result<(), AgentsStoreError> {
    let is_finite = |tensor: &Tensor| -> candle_core::Result<bool> {
        let numbers: Vec<f32> = tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
        Ok(numbers.iter().all(|number| number.is_finite()))
    };
    for (name, tensor) in tensors {
        if !is_finite(tensor).map_err(|error| unusable(path, &error))? {
            return Err(unusable(path, &format!("'{name}' holds numbers that are not finite")));
        }
    }
    Ok(())
}

/// FNV-1a with 64 bits. It finds mistakes, not attacks.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mixed = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{mixed:016x}")
}
