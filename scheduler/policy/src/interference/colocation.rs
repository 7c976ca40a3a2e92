//! Jobs beside each other on one GPU: what is known of them, and what is expected.

use std::collections::BTreeMap;

use cohabit_types::{Bytes, ModelFamily, SharingStrategy};
use serde::{Deserialize, Serialize};

use super::GpuModel;

/// The standard deviation of the logarithm of a slowdown of which nothing is known: a factor of 1.6 either
/// way, as far as measured pairs lie apart.
pub const UNKNOWN_UNCERTAINTY: f64 = 0.47;

/// What a job of which nobody knows better is taken for: most training jobs keep a GPU busy.
const USUAL_BUSY: f64 = 0.8;

/// Jobs that share a GPU.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColocationSet {
    /// On which.
    pub gpu: GpuKind,
    /// How they share it, where it is known.
    pub sharing: Option<SharingStrategy>,
    /// The jobs. Their order means nothing.
    pub members: Vec<SetMember>,
}

/// A make of GPU.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuKind {
    /// Its name in small letters: `v100`, `nvidia h200`.
    name: String,
}

/// One job of a set.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetMember {
    /// The name of what is trained; empty where nobody says.
    pub model: String,
    /// Its broad kind.
    pub family: Option<ModelFamily>,
    /// Samples in one step.
    pub batch: Option<u64>,
    /// `fp32`, `bf16`; empty where nobody says.
    pub precision: String,
    /// What its makers say of the model.
    pub features: ModelFeatures,
    /// What was measured of it alone on such a GPU.
    pub solo: SoloMetrics,
    /// The part of a GPU that it asks for, 0 to 1: its own word for how busy it keeps one.
    pub claim: Option<f64>,
}

/// What is trained, in steps of what size and of which precision.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Configuration {
    /// The name of what is trained.
    pub model: String,
    /// Samples in one step.
    pub batch: Option<u64>,
    /// `fp32`, `bf16`; empty where nobody says.
    pub precision: String,
}

/// Numbers of a model, as far as they are told.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFeatures {
    /// Trainable parameters.
    pub parameters: Option<f64>,
    /// Floating-point operations to train on one sample.
    pub flops_per_sample: Option<f64>,
    /// Memory for activations of one step, in bytes.
    pub activation_bytes: Option<f64>,
    /// Input of one sample, in bytes.
    pub input_bytes: Option<f64>,
    /// How often each operator occurs.
    pub operators: BTreeMap<String, f64>,
}

/// A job alone on a GPU.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoloMetrics {
    /// Steps a second.
    pub rate: Option<f64>,
    /// The most memory that it holds, in bytes.
    pub memory: Option<f64>,
    /// Part of the time during which the GPU is busy, 0 to 1.
    pub utilisation: Option<f64>,
    /// What else was measured, by the name of its column: the performance monitor's means.
    pub others: BTreeMap<String, f64>,
}

/// What is expected of one member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColocationEstimate {
    /// How many times as long a step takes as alone, at least 1.
    pub slowdown: f64,
    /// Standard deviation of the logarithm of the slowdown.
    pub uncertainty: f64,
    /// Memory that it holds, in bytes, where there is ground for an answer.
    pub memory: Option<f64>,
    /// Part of the time during which it keeps the GPU busy, 0 to 1, where there is ground for an answer.
    pub utilisation: Option<f64>,
    /// How likely the whole set fits into the GPU's memory, 0 to 1: the same for all members.
    pub fits: f64,
    /// Whether this very set was seen on this cluster, so that nothing is predicted.
    pub measured: bool,
}

impl ColocationSet {
    /// Memory of all members alone together, as a part of the GPU's; co-located memory adds up. None where
    /// one of them or the GPU is unknown.
    #[must_use]
    pub fn memory_filled(&self) -> Option<f64> {
        let capacity = self.gpu.memory()?.0 as f64;
        let all: Option<f64> = self.members.iter().map(|member| member.solo.memory).sum();
        Some(all? / capacity)
    }
}

impl GpuKind {
    /// The kind with this name, in whatever case.
    #[must_use]
    pub fn named(name: &str) -> GpuKind {
        GpuKind { name: name.trim().to_lowercase() }
    }

    /// Its name in small letters.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its data sheet says, where it is a known one.
    #[must_use]
    pub fn model(&self) -> Option<GpuModel> {
        GpuModel::within(&self.name)
    }

    /// Its memory, where it is a known one.
    #[must_use]
    pub fn memory(&self) -> Option<Bytes> {
        self.model().map(|model| model.memory)
    }
}

impl SetMember {
    /// How busy it keeps the GPU alone, 0 to 1: as was measured, or by its own word, or as most jobs do.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.solo.utilisation.or(self.claim).unwrap_or(USUAL_BUSY)
    }

    /// What measurements know a job by.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        Configuration { model: self.model.clone(), batch: self.batch, precision: self.precision.clone() }
    }
}

impl std::fmt::Display for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.model)?;
        if let Some(batch) = self.batch {
            write!(f, " ({batch})")?;
        }
        if self.precision.is_empty() { Ok(()) } else { write!(f, " {}", self.precision) }
    }
}

impl ColocationEstimate {
    /// Of a job that has the GPU for itself.
    #[must_use]
    pub fn alone(member: &SetMember) -> ColocationEstimate {
        let SoloMetrics { memory, utilisation, .. } = member.solo;
        ColocationEstimate {
            slowdown: 1.0,
            uncertainty: 0.0,
            memory,
            utilisation,
            fits: 1.0,
            measured: false,
        }
    }

    /// Of a job that is slowed so much: memory stays, and it keeps the GPU busy for a smaller part of the
    /// time by about the same factor.
    #[must_use]
    pub fn slowed(member: &SetMember, slowdown: f64, uncertainty: f64) -> ColocationEstimate {
        let slowdown = if slowdown.is_finite() { slowdown.max(1.0) } else { 1.0 };
        let utilisation = member.solo.utilisation.map(|alone| alone / slowdown);
        ColocationEstimate { slowdown, uncertainty, utilisation, ..ColocationEstimate::alone(member) }
    }
}
