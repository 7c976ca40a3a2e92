//! Measures what sharing a GPU costs: training programs alone, in pairs and in triples, time-sliced and under
//! MPS.
//!
//! ```text
//! profiler          the comparison as a whole                     (start here)
//! options           what to compare, where, and how long
//! observer          receives the progress of a profile run
//! workload          a program to measure
//! combinations      which workloads run together
//! agenda            what is measured in which order
//! sharing_setup     the GPU without MPS, or with an MPS daemon
//! workload_process  a workload as a process
//! trial             one set of workloads on the GPU
//! rates             steps per second, and whether they are steady
//! usage             GPU memory and utilization of a set
//! gpu               the GPU, and who else uses it
//! table             the co-location table (CSV)
//! details           how its rows were measured (JSON)
//! results           both as files
//! summary           averages for each way of sharing
//! error             why a comparison cannot start or continue
//! ```
//!
//! Every call may block on processes, on the driver and on files: call it on a blocking thread.

mod agenda;
mod combinations;
mod details;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gpu;
mod observer;
mod options;
mod profiler;
mod rates;
mod results;
mod sharing_setup;
mod summary;
mod table;
mod trial;
mod usage;
mod workload;
mod workload_process;

pub use agenda::ProfilePlan;
pub use error::ProfileError;
pub use observer::{ProfileObserver, TrialStage, UnmeasuredSet};
pub use options::{BusyGpu, ProfileOptions};
pub use profiler::{ProfileReport, Profiler};
pub use rates::TrialTiming;
pub use summary::{SetSlowdowns, SharingSummary, summaries};
pub use table::{MemberFigures, ProfileRow, TableError};
pub use trial::EarlyStop;
pub use workload::ProfileWorkload;
