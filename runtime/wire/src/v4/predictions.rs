//! Predictions as clients of protocol 4 know them. Frozen: not a field may change.

use cohabit_types::{self as types, Bytes, ColocationSlowdown, DryRunNeighbor, DryRunPlacement, Slowdown};
use cohabit_types::{Span, Time};
use serde::{Deserialize, Serialize};

/// What was predicted for a job.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPrediction {
    /// Training iterations.
    pub iterations: Option<u64>,
    /// Time it runs for when alone.
    pub runtime: Option<Span>,
    /// Its slowdown factor beside its neighbors.
    pub slowdown: Option<Slowdown>,
    /// Memory that it needs on each of its devices, where it did not say.
    pub gpu_memory: Option<Bytes>,
    /// When it may start.
    pub starts_at: Option<Time>,
    /// When it may end.
    pub ends_at: Option<Time>,
}

/// Where a job would go if it were submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DryRun {
    /// Where it would go now; none where it would have to wait.
    pub place: Option<DryRunPlacement>,
    /// Why it would start at once, or why it would wait.
    pub reason: String,
    /// What is predicted of it there.
    pub predicted: JobPrediction,
    /// Its own slowdown beside its neighbors; none where it would have none.
    pub slowdown: Option<ColocationSlowdown>,
    /// Those neighbors.
    pub neighbors: Vec<DryRunNeighbor>,
}

impl From<types::JobPrediction> for JobPrediction {
    fn from(predicted: types::JobPrediction) -> JobPrediction {
        let types::JobPrediction {
            iterations,
            runtime,
            runtime_between: _,
            runs: _,
            slowdown,
            gpu_memory,
            starts_at,
            starts_between: _,
            ends_at,
            ends_between: _,
        } = predicted;
        JobPrediction { iterations, runtime, slowdown, gpu_memory, starts_at, ends_at }
    }
}

impl From<types::DryRun> for DryRun {
    fn from(dry_run: types::DryRun) -> DryRun {
        let types::DryRun { place, reason, predicted, slowdown, neighbors } = dry_run;
        DryRun { place, reason, predicted: predicted.into(), slowdown, neighbors }
    }
}
