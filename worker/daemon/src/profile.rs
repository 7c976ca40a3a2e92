//! Measures what sharing a GPU costs: training programs alone, in pairs and in triples, by turns and under
//! MPS.
//!
//! ```text
//! workload      what is measured
//! combinations  which workloads are put together
//! agenda        what is measured in which order
//! access        how members get at the GPU: without MPS, or through a daemon
//! member        a workload as a process
//! trial         one set on the GPU
//! pace          how fast a workload gets on, and whether steadily
//! usage         what members took of their GPU
//! profiler      the comparison as a whole
//! table         the co-location table
//! details       what lies beside it: where, when and how its rows were measured
//! results       both as files
//! summary       what a table says about each way of sharing
//! ```
//!
//! Everything here waits for processes, for the driver and for files: call it off the async runtime.

mod access;
mod agenda;
mod combinations;
mod details;
mod error;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod gpu;
mod member;
mod pace;
mod profiler;
mod results;
mod summary;
mod table;
mod trial;
mod usage;
mod workload;

use std::path::PathBuf;
use std::time::Duration;

use cohabit_types::SharingStrategy;

pub use agenda::ProfilePlan;
pub use error::ProfileError;
pub use pace::TrialTiming;
pub use profiler::{BusyGpu, ProfileReport, Profiler};
pub use summary::{SetSlowdowns, SharingSummary, summaries};
pub use table::{MemberFigures, ProfileRow, TableError};
pub use trial::EarlyStop;
pub use workload::ProfileWorkload;

/// What to compare, where, and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileOptions {
    /// With names that differ.
    pub workloads: Vec<ProfileWorkload>,
    /// Which of them together, and by which ways of sharing.
    pub comparison: ProfilePlan,
    /// How long each set is measured.
    pub pacing: TrialTiming,
    /// How long the command may take; no set that is under way by then counts.
    pub max_time: Option<Duration>,
    /// The table to fill; what is in it already is not measured again.
    pub table: PathBuf,
    /// The GPU by UUID, the beginning of one, or number; none where there is only one.
    pub gpu: Option<String>,
    /// What to do if somebody is on it.
    pub busy: BusyGpu,
    /// State folder of this machine's worker, in whose place the profiler is: no worker may run with it.
    pub state: PathBuf,
    /// NVIDIA's management library, if not the one by the usual name.
    pub nvml_library: Option<PathBuf>,
    /// Where MPS's programs are looked for, in the form of `PATH`.
    pub search_path: String,
    /// The command, as it can be typed again; for the record.
    pub command: String,
}

/// What is done with the present set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialStage {
    /// Its members load.
    Starting,
    /// They make steps that do not count.
    WarmingUp,
    /// Their steps count.
    Measuring,
}

/// A set that could not be measured; the next command tries it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmeasuredSet {
    /// Its members.
    pub workloads: Vec<String>,
    /// How they were to share.
    pub sharing: SharingStrategy,
    /// Why not.
    pub reason: String,
}

/// Who watches a comparison.
pub trait ProfileObserver {
    /// The next set begins, after so many of all that are left.
    fn begins(&mut self, workloads: &[String], sharing: SharingStrategy, before: usize, of: usize);

    /// The set is at this stage.
    fn stage(&mut self, stage: TrialStage);

    /// The set is over; a reason tells why it has no rates.
    fn ended(&mut self, reason: Option<&str>);
}
