//! GPU measurements: present readings, and the rates of ranks beside others.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, RankId, Time};

/// A reading of a GPU; values that it does not report are missing.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuReading {
    /// The part of the time during which any kernel ran, 0 to 1. Says nothing of how full the GPU was.
    pub utilization: Option<f64>,
    /// Memory in use by all processes and the driver.
    pub memory_used: Option<Bytes>,
    /// Watts.
    pub power: Option<f64>,
    /// Degrees Celsius.
    pub temperature: Option<f64>,
    /// What the performance monitor of newer GPUs says.
    pub performance: Option<GpuPerformance>,
}

/// Means over the time since the reading before, each 0 to 1.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuPerformance {
    /// Multiprocessors with work.
    pub sm_active: Option<f64>,
    /// Warps on them, of those they could hold.
    pub sm_occupancy: Option<f64>,
    /// Tensor cores at work.
    pub tensor_active: Option<f64>,
    /// Bandwidth of the memory in use.
    pub memory_bandwidth: Option<f64>,
}

/// A reading of a GPU, and the memory of each rank on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceTelemetry {
    /// Which device.
    pub device: DeviceId,
    /// When it was read, by the worker's clock.
    pub at: Time,
    /// The reading.
    pub reading: GpuReading,
    /// Memory of each rank on it, where the driver tells.
    pub ranks: Vec<(RankId, Bytes)>,
}

/// The rate of a rank while the same others were on its device: a sample for the interference models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColocationSample {
    /// The rank or attempt.
    pub rank: RankId,
    /// Its device.
    pub device: DeviceId,
    /// The device's model.
    pub gpu: String,
    /// How the device was shared.
    pub sharing: SharingStrategy,
    /// The other ranks on the device all that time.
    pub neighbors: Vec<RankId>,
    /// From the first step counted.
    pub from: Time,
    /// To the last.
    pub to: Time,
    /// Steps between them.
    pub steps: u64,
    /// Steps a second.
    pub rate: f64,
    /// The most memory that the rank was seen to hold on the device.
    pub memory: Option<Bytes>,
    /// The mean of the device's utilization, 0 to 1.
    pub utilization: Option<f64>,
}

/// How a device was shared while a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharingStrategy {
    /// Not at all, and without MPS.
    Exclusive,
    /// Under MPS, alone or with others.
    Mps,
    /// By taking turns.
    TimeSliced,
}

impl SharingStrategy {
    /// Every strategy, in the order of tables.
    pub const ALL: [SharingStrategy; 3] =
        [SharingStrategy::Exclusive, SharingStrategy::TimeSliced, SharingStrategy::Mps];

    /// The name that command lines and tables have for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            SharingStrategy::Exclusive => "exclusive",
            SharingStrategy::TimeSliced => "time-sliced",
            SharingStrategy::Mps => "mps",
        }
    }
}

/// The strategy with this name; the error lists the names.
impl FromStr for SharingStrategy {
    type Err = String;
    fn from_str(word: &str) -> Result<SharingStrategy, String> {
        let known = || SharingStrategy::ALL.map(SharingStrategy::word).join(", ");
        SharingStrategy::ALL
            .into_iter()
            .find(|sharing| sharing.word() == word)
            .ok_or_else(|| format!("'{word}' is not a sharing mode: use one of {}", known()))
    }
}

/// Columns that every co-location table has, first and in this order: a row for each member of a set. Rates
/// in steps a second, memory in bytes, utilization from 0 to 1.
pub const CO_LOCATION_COLUMNS: [&str; 12] = [
    "set",
    "gpu",
    "sharing",
    "model",
    "batch",
    "solo_rate",
    "rate",
    "solo_mem",
    "mem",
    "solo_util",
    "util",
    "feasible",
];
