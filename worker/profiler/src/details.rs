//! The details beside a table: where, when and how its rows were measured.

use cohabit_host::format::{FormatError, VersionedFile, decode_file};
use cohabit_types::{Device, FormatVersion, GpuPerformance};
use serde::{Deserialize, Serialize};

/// The schema of the details that is written, and the latest that is read.
const SCHEMA: FormatVersion = FormatVersion::new(1);

const REMEDY: &str = "use the newer version for this table, or measure into another one";

/// The content of `TABLE.json`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Details {
    #[serde(default)]
    schema: FormatVersion,
    /// All commands that measured sets of the table, in order.
    pub(super) runs: Vec<RunDetails>,
    /// All sets of the table.
    pub(super) sets: Vec<SetDetails>,
    /// Sets that could not be measured. The next command tries them again.
    pub(super) not_measured: Vec<NotMeasured>,
}

impl VersionedFile for Details {
    fn encode(&self) -> Vec<u8> {
        let details = Details { schema: SCHEMA, ..self.clone() };
        let mut text = serde_json::to_vec_pretty(&details).expect("details are plain values with text keys");
        text.push(b'\n');
        text
    }

    fn decode(text: &[u8]) -> Result<Details, FormatError> {
        decode_file(text, SCHEMA, REMEDY, |details: &Details| details.schema)
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RunDetails {
    pub(super) command: String,
    /// RFC 3339, UTC.
    pub(super) started_at: String,
    /// The version of this program.
    pub(super) cohabit: String,
    /// With its driver and CUDA versions.
    pub(super) gpu: Device,
    pub(super) warm_up_s: f64,
    pub(super) steady_s: f64,
    pub(super) seed: u64,
}

/// One set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SetDetails {
    /// Its number in the table.
    pub(super) set: u64,
    /// Which of `runs` measured it, from 0.
    pub(super) run: usize,
    pub(super) sharing: String,
    /// RFC 3339, UTC.
    pub(super) ended_at: String,
    /// The time from the start of its members to their end.
    pub(super) took_s: f64,
    pub(super) feasible: bool,
    /// Why it is not feasible.
    pub(super) reason: Option<String>,
    pub(super) members: Vec<MemberDetails>,
    /// The performance monitor's averages over the measurement, 0 to 1.
    pub(super) performance: Option<GpuPerformance>,
}

/// One member of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MemberDetails {
    pub(super) workload: String,
    pub(super) command: Vec<String>,
    /// Steps per second in each window of the measurement with a step.
    pub(super) windows: Vec<f64>,
    /// Whether the spread of the windows was within the bound.
    pub(super) steady: bool,
}

/// A set that could not be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NotMeasured {
    /// Which of `runs` tried, from 0.
    pub(super) run: usize,
    pub(super) sharing: String,
    pub(super) workloads: Vec<String>,
    pub(super) reason: String,
}
