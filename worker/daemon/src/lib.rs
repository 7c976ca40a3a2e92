//! The worker of a Cohabit cluster: the daemon, and the executors that hold its ranks.
//!
//! [`WorkerDaemon`] joins a machine to a cluster and runs ranks by the head's orders; [`executor()`] is the
//! process that holds one rank and outlives the daemon. What they share is a folder for each rank: what to
//! start, what it printed, how it ended. Decisions are made in `cohabit-worker-core`; here are processes,
//! files, devices and the link.

mod assignment;
mod clock;
mod daemon;
mod executor;
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod isolation;
mod log;
mod process;
pub mod profile;
mod progress;
mod rank_folder;
mod removal;
mod wire;

pub use cohabit_gpu as gpu;
pub use daemon::{DeviceSpec, MpsMode, ParseDeviceSpecError, WorkerDaemon, WorkerError, WorkerOptions};
pub use executor::executor;
pub use files::FileError;
pub use isolation::{RootJobs, check_delegation};
pub use log::LogLimits;
