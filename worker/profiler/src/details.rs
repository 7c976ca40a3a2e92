//! What lies beside a table: where, when and how its rows were measured.

use cohabit_types::{Device, GpuPerformance};
use serde::{Deserialize, Serialize};

/// The content of `TABLE.json`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) schema: u32,
    /// Every command that measured something for the table, in their order.
    pub(super) runs: Vec<RunDetails>,
    /// Every set of the table.
    pub(super) sets: Vec<SetDetails>,
    /// Sets that say nothing, because something else went wrong. They are tried again by the next command.
    pub(super) not_measured: Vec<NotMeasured>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RunDetails {
    pub(super) command: String,
    /// RFC 3339, UTC.
    pub(super) started_at: String,
    /// The version of this program.
    pub(super) cohabit: String,
    /// With its driver and CUDA.
    pub(super) gpu: Device,
    pub(super) warm_up_s: f64,
    pub(super) steady_s: f64,
    pub(super) seed: u64,
}

/// One set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SetDetails {
    /// As in the table.
    pub(super) set: u64,
    /// Which of `runs` measured it, from 0.
    pub(super) run: usize,
    pub(super) sharing: String,
    /// RFC 3339, UTC.
    pub(super) ended_at: String,
    /// From the start of its members to their end.
    pub(super) took_s: f64,
    pub(super) feasible: bool,
    /// Why not.
    pub(super) reason: Option<String>,
    pub(super) members: Vec<MemberDetails>,
    /// The performance monitor's means over the measurement, 0 to 1.
    pub(super) performance: Option<GpuPerformance>,
}

/// One member of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MemberDetails {
    pub(super) workload: String,
    pub(super) command: Vec<String>,
    /// Steps a second in each window of the measurement that saw a step.
    pub(super) windows: Vec<f64>,
    /// Whether all windows lay within the bound.
    pub(super) steady: bool,
}

/// A set that says nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NotMeasured {
    /// Which of `runs` tried, from 0.
    pub(super) run: usize,
    pub(super) sharing: String,
    pub(super) workloads: Vec<String>,
    pub(super) reason: String,
}
