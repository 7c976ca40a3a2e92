//! The daemons: head, worker, both at once, and the demo.
//!
//! Values that may also stand in a configuration file are kept as written; `config` checks them, whichever
//! way they came.

#[cfg(feature = "daemon")]
use std::path::PathBuf;

use clap::{Args, Subcommand};
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;

// Arguments of `demo`.
#[cfg(feature = "demo")]
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Host slots to share between the jobs, two on each; one for every two cores without it
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) slots: Option<u32>,
    #[command(flatten)]
    pub(crate) logging: LoggingArguments,
}

// Arguments of `up`.
#[cfg(all(feature = "head", feature = "worker"))]
#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    #[command(flatten)]
    pub(crate) head: HeadStartArguments,
    #[command(flatten)]
    pub(crate) worker: DeviceArguments,
}

// Arguments of `head`.
#[cfg(feature = "head")]
#[derive(Debug, Args)]
pub(crate) struct HeadArguments {
    #[command(subcommand)]
    pub(crate) verb: HeadVerb,
}

// What to do with the head.
#[cfg(feature = "head")]
#[derive(Debug, Subcommand)]
pub(crate) enum HeadVerb {
    /// Run the head in the foreground; prints one line once it is ready
    Start(HeadStartArguments),
}

// Arguments of `head start`.
#[cfg(feature = "head")]
#[derive(Debug, Args)]
pub(crate) struct HeadStartArguments {
    /// Where to listen; port 0 picks a free one [default: 0.0.0.0:7070] [env: COHABIT_LISTEN]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// State folder [env: COHABIT_STATE]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Scheduling policy [default: hybrid] [env: COHABIT_POLICY]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// What tells how much jobs on one GPU slow each other down, until the head has learned better: law,
    /// pretrained, table:FILE (from `cohabit profile`) or model:FOLDER (from `cohabit predict train`)
    /// [default: pretrained] [env: COHABIT_INTERFERENCE]
    #[arg(long, value_name = "BASIS")]
    pub(crate) interference: Option<String>,
    /// How many times as long as alone a step of a job may take beside others, where the job does not say
    /// [default: 1.3] [env: COHABIT_MAX_SLOWDOWN]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) max_slowdown: Option<String>,
    /// How long a node may be unreachable before its jobs are given up [default: 5m] [env:
    /// COHABIT_LOST_AFTER]
    #[arg(long, value_name = "TIME")]
    pub(crate) lost_after: Option<String>,
    #[command(flatten)]
    pub(crate) logging: LoggingArguments,
}

// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    #[command(subcommand)]
    pub(crate) verb: WorkerVerb,
}

// What to do with a worker.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerVerb {
    /// Run a worker in the foreground; prints one line once it has joined
    #[cfg(feature = "worker")]
    Start(Box<WorkerStartArguments>),
    /// Give a node no new jobs; those that run go on
    Drain(NodeArguments),
    /// Give a drained node jobs again
    Resume(NodeArguments),
}

impl WorkerVerb {
    /// How the result is shown, if there is one.
    pub(crate) fn display(&self) -> Option<&DisplayArguments> {
        match self {
            #[cfg(feature = "worker")]
            WorkerVerb::Start(_) => None,
            WorkerVerb::Drain(arguments) | WorkerVerb::Resume(arguments) => Some(&arguments.display),
        }
    }
}

// Arguments of `worker start`.
#[cfg(feature = "worker")]
#[derive(Debug, Args)]
pub(crate) struct WorkerStartArguments {
    /// The head [env: COHABIT_JOIN]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) join: Option<String>,
    /// File with a worker's token [env: COHABIT_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// State folder of this worker; `worker` in the usual state folder, or in COHABIT_STATE, without it
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) devices: DeviceArguments,
    #[command(flatten)]
    pub(crate) logging: LoggingArguments,
}

// What a worker offers.
#[cfg(feature = "worker")]
#[derive(Debug, Args)]
#[command(next_help_heading = "Worker")]
pub(crate) struct DeviceArguments {
    /// Devices: auto, host:4 (four host slots), sim:2xH200-141G (made-up GPUs) [default: auto] [env:
    /// COHABIT_DEVICES]
    #[arg(long, value_name = "SPEC")]
    pub(crate) devices: Option<String>,
    /// How many ranks may share a GPU [default: 3] [env: COHABIT_MAX_SHARING]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_sharing: Option<String>,
    /// Memory that ranks which share a GPU leave free together [default: 1G] [env: COHABIT_GPU_RESERVE]
    #[arg(long, value_name = "SIZE")]
    pub(crate) gpu_reserve: Option<String>,
    /// Whether shares are enforced under NVIDIA's MPS: auto (where it can be) or off [default: auto] [env:
    /// COHABIT_MPS]
    #[arg(long, value_name = "WHEN")]
    pub(crate) mps: Option<String>,
    /// NVIDIA's management library, where it is not found by its name [env: COHABIT_NVML_LIBRARY]
    #[arg(long, value_name = "FILE")]
    pub(crate) nvml_library: Option<PathBuf>,
    /// Speed of the network, as 25g or 3GB/s; that of its interface without it [env: COHABIT_NETWORK]
    #[arg(long, value_name = "SPEED")]
    pub(crate) network: Option<String>,
    /// Speed between the devices of the node, as 300GB/s [env: COHABIT_INTERCONNECT]
    #[arg(long, value_name = "SPEED")]
    pub(crate) interconnect: Option<String>,
    /// Name of the node; the host's name without it [env: COHABIT_NAME]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// A worker that is root runs each job as the account of its user; with this, none as root, not even an
    /// admin's [env: COHABIT_NO_ROOT_JOBS]
    #[arg(long)]
    pub(crate) no_root_jobs: bool,
    /// How long ranks go on when the head cannot be reached [default: 2m] [env: COHABIT_ORPHAN_GRACE]
    #[arg(long, value_name = "TIME")]
    pub(crate) orphan_grace: Option<String>,
}

// Arguments of `worker drain` and `worker resume`.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// The node's name, as `cohabit nodes` shows it
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// How a daemon writes its log, which goes to stderr.
#[cfg(feature = "daemon")]
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LoggingArguments {
    /// Level, or filter as of tracing-subscriber [default: info,tarpc=warn] [env: COHABIT_LOG]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log_level: Option<String>,
    /// text or json [default: text] [env: COHABIT_LOG_FORMAT]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}
