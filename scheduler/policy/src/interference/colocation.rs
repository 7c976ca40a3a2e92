//! Sets of jobs that share one GPU: what is known of each job, and what is expected.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{Bytes, ModelFamily, SharingStrategy};
use serde::{Deserialize, Serialize};

use super::GpuModel;

/// The standard deviation of the logarithm of a slowdown about which nothing is known: a factor of 1.6
/// either way, as far as measured pairs differ.
pub const UNKNOWN_UNCERTAINTY: f64 = 0.47;

/// A set that is less likely to fit the GPU's memory is refused, or chosen only if there is no other.
pub(crate) const LIKELY_TO_FIT: f64 = 0.5;

/// No set is slower than this; a prediction beyond is none.
const LARGEST_SLOWDOWN: f64 = 1_000.0;

/// The utilization assumed for a job about which nothing is known: most training jobs keep a GPU busy.
const USUAL_BUSY: f64 = 0.8;

/// Jobs that share a GPU.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColocationSet {
    /// The kind of GPU.
    pub gpu: GpuKind,
    /// How they share it, where known.
    pub sharing: Option<SharingStrategy>,
    /// The jobs. Their order means nothing.
    pub members: Vec<SetMember>,
}

/// A kind of GPU, known by its name.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct GpuKind {
    /// The name in lower case: `v100`, `nvidia h200`. Many sets contain it, so copies have it in common.
    name: Arc<str>,
}

/// One job of a set.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetMember {
    /// The name of the workload; empty where unknown.
    pub model: String,
    /// The broad kind of its model.
    pub family: Option<ModelFamily>,
    /// Samples in one step.
    pub batch: Option<u64>,
    /// `fp32`, `bf16`; empty where unknown.
    pub precision: String,
    /// What the description of its model states.
    pub features: ModelFeatures,
    /// What was measured of it alone on such a GPU.
    pub solo: SoloMetrics,
    /// The share of a GPU that it asks for, 0 to 1; it stands for a utilization that was not measured.
    pub claim: Option<f64>,
}

/// A workload with its batch size and precision: what measurements are known by.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Configuration {
    /// The name of the workload.
    pub model: String,
    /// Samples in one step.
    pub batch: Option<u64>,
    /// `fp32`, `bf16`; empty where unknown.
    pub precision: String,
}

/// Figures of a model, as far as they are stated.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFeatures {
    /// Trainable parameters.
    pub parameters: Option<f64>,
    /// Floating-point operations to train on one sample.
    pub flops_per_sample: Option<f64>,
    /// Memory for the activations of one step, in bytes.
    pub activation_bytes: Option<f64>,
    /// Input of one sample, in bytes.
    pub input_bytes: Option<f64>,
    /// The number of occurrences of each operator.
    pub operators: BTreeMap<String, f64>,
}

/// What was measured of a job alone on a GPU.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoloMetrics {
    /// Steps per second.
    pub rate: Option<f64>,
    /// The most memory that it held, in bytes.
    pub memory: Option<f64>,
    /// The fraction of time during which the GPU is busy, 0 to 1.
    #[serde(rename = "utilisation")]
    pub utilization: Option<f64>,
    /// Further measurements by column name: means of the performance monitor.
    pub others: BTreeMap<String, f64>,
}

/// What is expected of one member of a set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColocationEstimate {
    /// Its slowdown as a factor: the time of a step over that alone, at least 1.
    pub slowdown: f64,
    /// Standard deviation of the logarithm of the slowdown.
    pub uncertainty: f64,
    /// Memory that it holds, in bytes; `None` where there is no basis for an answer.
    pub memory: Option<f64>,
    /// The fraction of time during which it keeps the GPU busy, 0 to 1; `None` where there is no basis for
    /// an answer.
    pub utilization: Option<f64>,
    /// The probability that the whole set fits the GPU's memory, 0 to 1: the same for all members.
    pub fits: f64,
    /// Whether this very set was measured on this cluster, so that nothing is predicted.
    pub measured: bool,
}

impl ColocationSet {
    /// The memory of all members alone, summed up, as a fraction of the GPU's; co-located memory adds up.
    /// `None` where one of them or the GPU is unknown.
    #[must_use]
    pub fn memory_filled(&self) -> Option<f64> {
        let capacity = self.gpu.memory()?.0 as f64;
        let all: Option<f64> = self.members.iter().map(|member| member.solo.memory).sum();
        Some(all? / capacity)
    }
}

impl GpuKind {
    /// The kind with this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> GpuKind {
        GpuKind { name: name.trim().to_lowercase().into() }
    }

    /// Its name in lower case.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its data sheet, where it is a known GPU.
    #[must_use]
    pub fn model(&self) -> Option<GpuModel> {
        GpuModel::within(&self.name)
    }

    /// Its memory, where it is a known GPU.
    #[must_use]
    pub fn memory(&self) -> Option<Bytes> {
        self.model().map(|model| model.memory)
    }
}

impl From<String> for GpuKind {
    fn from(name: String) -> GpuKind {
        GpuKind { name: name.into() }
    }
}

impl From<GpuKind> for String {
    fn from(kind: GpuKind) -> String {
        (*kind.name).to_owned()
    }
}

impl SetMember {
    /// How busy it keeps the GPU alone, 0 to 1: as measured, or as it claims, or as most jobs do.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.solo.utilization.or(self.claim).unwrap_or(USUAL_BUSY)
    }

    /// What measurements know the job by.
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
    /// The estimate of a job that has the GPU for itself.
    #[must_use]
    pub fn alone(member: &SetMember) -> ColocationEstimate {
        let SoloMetrics { memory, utilization, .. } = member.solo;
        ColocationEstimate {
            slowdown: 1.0,
            uncertainty: 0.0,
            memory,
            utilization,
            fits: 1.0,
            measured: false,
        }
    }

    /// The estimate of a job with this slowdown: its memory stays, and it keeps the GPU busy for a smaller
    /// fraction of the time by about the same factor.
    #[must_use]
    pub fn slowed(member: &SetMember, slowdown: f64, uncertainty: f64) -> ColocationEstimate {
        let slowdown = if slowdown.is_finite() { slowdown.max(1.0) } else { 1.0 };
        let utilization = member.solo.utilization.map(|alone| alone / slowdown);
        ColocationEstimate { slowdown, uncertainty, utilization, ..ColocationEstimate::alone(member) }
    }

    /// The estimate of any predictor without what cannot be. A slowdown that is no number is larger than any
    /// limit, and a set that may or may not fit does not, so that nonsense overrides no limit.
    pub(crate) fn plausible(self) -> ColocationEstimate {
        let number = |it: &f64| it.is_finite() && *it >= 0.0;
        let or = |it: f64, otherwise: f64| if it.is_finite() { it } else { otherwise };
        ColocationEstimate {
            slowdown: or(self.slowdown, LARGEST_SLOWDOWN).clamp(1.0, LARGEST_SLOWDOWN),
            uncertainty: Some(self.uncertainty).filter(number).unwrap_or(UNKNOWN_UNCERTAINTY),
            memory: self.memory.filter(number),
            utilization: self.utilization.filter(number).map(|it| it.min(1.0)),
            fits: or(self.fits, 0.0).clamp(0.0, 1.0),
            measured: self.measured,
        }
    }
}
