//! What to compare, where, and how long.

use std::path::PathBuf;
use std::time::Duration;

use crate::agenda::ProfilePlan;
use crate::rates::TrialTiming;
use crate::workload::ProfileWorkload;

/// What to compare, where, and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileOptions {
    /// The workloads, with different names.
    pub workloads: Vec<ProfileWorkload>,
    /// Which of them run together, and with which ways of sharing.
    pub comparison: ProfilePlan,
    /// How long each set is measured.
    pub pacing: TrialTiming,
    /// How long the command may take. A set that is running then does not count.
    pub max_time: Option<Duration>,
    /// The table to fill. Sets that are in it are not measured again.
    pub table: PathBuf,
    /// The GPU by UUID, the beginning of a UUID, or number. `None` if the host has only one.
    pub gpu: Option<String>,
    /// What to do if other processes use it.
    pub busy: BusyGpu,
    /// The state directory of this host's worker. The profiler locks it, so no worker can run there
    /// meanwhile.
    pub state: PathBuf,
    /// NVIDIA's management library, if not the one with the default name.
    pub nvml_library: Option<PathBuf>,
    /// Where to look for the MPS programs, in the form of `PATH`.
    pub search_path: String,
    /// The command line, for the record.
    pub command: String,
}

/// Whether to measure on a GPU that other processes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusyGpu {
    /// Refuse such a GPU.
    Refuse,
    /// Measure anyway.
    Accept,
}
