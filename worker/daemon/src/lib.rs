//! The worker daemon: joins this host to a cluster and runs ranks by order of the head.
//!
//! All decisions are made in `cohabit-worker-core`; the actors here turn what happens into its events and
//! carry out its effects. The daemon may stop or crash at any time: executors (`cohabit-executor`) hold the
//! ranks, and the next daemon on the same state directory adopts them. What daemon and executors share is in
//! `cohabit-host`.
//!
//! ```text
//! head <-> link <-> driver (the core) <-> one rank actor for each rank <-> socket <-> executor
//!                          |
//!                          +-- one actor for the MPS daemon of each GPU, and the monitor of all GPUs
//! ```
//!
//! Start reading at [`WorkerDaemon::start`], then `driver`.

mod acknowledgements;
mod activity;
mod checkpoints;
mod cleaner;
mod code;
mod copies;
mod daemon;
mod devices;
mod driver;
mod error;
mod exec;
mod executor_pool;
mod executor_program;
mod forward;
mod gpu;
mod input;
mod isolation;
mod job_limit;
mod link;
mod listening_socket;
mod log_changes;
mod logs;
mod machine_info;
mod messages;
mod metrics;
mod network;
mod options;
mod ports;
mod rank;
mod rank_context;
mod rank_exit;
mod recovery;
mod removed_ranks;
mod report_batches;
mod retained_output;
mod retention;
mod search_path;
mod spare_directories;
mod spawn;
mod state_directory;
mod state_files;

pub use cohabit_host::{FileError, LogLimits, check_delegation};
pub use daemon::WorkerDaemon;
pub use devices::{DeviceIds, DeviceSpec, MpsMode, ParseDeviceSpecError};
pub use error::WorkerError;
pub use executor_program::ExecutorProgram;
pub use isolation::{AccountOptions, OwnAccount, RootJobs};
pub use options::{RetentionOptions, WorkerOptions};
