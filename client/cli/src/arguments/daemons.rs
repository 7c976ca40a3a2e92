//! Arguments of the daemons: `head`, `worker`, `up` and `demo`.
//!
//! Values that a configuration file may also set are kept as text. `config` checks them, wherever they came
//! from.

#[cfg(any(feature = "head", feature = "worker"))]
use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::Span;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use crate::completion;
use crate::values::BeginTime;

// Arguments of `demo`.
#[cfg(feature = "demo")]
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Host slots that the jobs share, two jobs on each [default: one per two cores, at most 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) slots: Option<u32>,
    /// Instead, let two jobs exchange cores while they run (policy tune=on): one draws images with many
    /// threads, the other computes with one. Takes a minute or two; needs a delegated cgroup to change shares
    #[arg(long, conflicts_with = "slots")]
    pub(crate) tune: bool,
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

// Commands on the head.
#[cfg(feature = "head")]
#[derive(Debug, Subcommand)]
pub(crate) enum HeadVerb {
    /// Run the head in the foreground and print one line when it is ready
    Start(Box<HeadStartArguments>),
    /// Show what in the journal stops every start, and set it aside or repair it
    Recover(HeadRecoverArguments),
    /// Save everything that a head needs to come back in one file, while it runs or not
    Backup(HeadBackupArguments),
    /// Make a new state directory from a backup; numbers of jobs jump, so that none is given twice
    Restore(HeadRestoreArguments),
}

#[cfg(feature = "head")]
impl HeadVerb {
    /// The display flags of commands that print a result.
    pub(crate) fn display(&self) -> Option<&DisplayArguments> {
        match self {
            HeadVerb::Start(_) => None,
            HeadVerb::Recover(arguments) => Some(&arguments.display),
            HeadVerb::Backup(arguments) => Some(&arguments.display),
            HeadVerb::Restore(arguments) => Some(&arguments.display),
        }
    }
}

// Arguments of `head backup`.
#[cfg(feature = "head")]
#[derive(Debug, Args)]
pub(crate) struct HeadBackupArguments {
    /// File to write, outside the state directory; only its owner can read it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// State directory of the head [env: COHABIT_STATE]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Replace FILE if it exists, once the new backup is complete
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `head restore`.
#[cfg(feature = "head")]
#[derive(Debug, Args)]
pub(crate) struct HeadRestoreArguments {
    /// File that `cohabit head backup` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// State directory to make; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `head recover`.
#[cfg(feature = "head")]
#[derive(Debug, Args)]
pub(crate) struct HeadRecoverArguments {
    /// State directory of the head [env: COHABIT_STATE]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Number of the event to set aside: the one that this command names without flags
    #[arg(long, value_name = "EVENT", conflicts_with = "retry")]
    pub(crate) quarantine: Option<u64>,
    /// Let the next start replay the event again
    #[arg(long)]
    pub(crate) retry: bool,
    /// Repair a damaged write-ahead log with what is behind the damage; refuses where that loses anything
    #[arg(long, conflicts_with_all = ["quarantine", "retry"])]
    pub(crate) salvage: bool,
    /// Continue with what is before the damage in the write-ahead log, and drop what is behind it
    #[arg(long, conflicts_with_all = ["quarantine", "retry", "salvage"])]
    pub(crate) cut: bool,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `head start`.
#[cfg(feature = "head")]
#[derive(Debug, Args)]
pub(crate) struct HeadStartArguments {
    /// Address to listen on; port 0 picks a free port [default: 0.0.0.0:7070, and 127.0.0.1:7070 for `up`]
    /// [env: COHABIT_LISTEN]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// State directory [env: COHABIT_STATE]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Start an empty cluster, with the same keys and tokens, where the journal of one is missing
    #[arg(long)]
    pub(crate) new_cluster: bool,
    /// Scheduling policy [default: hybrid] [env: COHABIT_POLICY]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Source of predicted slowdowns until the head has learned its own model: law (fair shares), pretrained,
    /// table:FILE (from `cohabit profile`) or model:DIR (from `cohabit predict train`) [default: pretrained]
    /// [env: COHABIT_INTERFERENCE]
    #[arg(long, value_name = "SOURCE")]
    pub(crate) interference: Option<String>,
    /// Measured tables of how much cores and host memory speed jobs up, for a policy with tune=on: a CSV file
    /// (profile,cores,memory_gb,speed), or a directory with Synergy's files *_1.py of models [env:
    /// COHABIT_SENSITIVITY]
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) sensitivity: Option<PathBuf>,
    /// Trained agents (from `cohabit policy train`) that decide for the policy maifs; without them its
    /// teacher does [env: COHABIT_AGENTS]
    #[arg(long, value_name = "DIR")]
    pub(crate) agents: Option<PathBuf>,
    /// Largest slowdown that jobs sharing a GPU may cause each other, as a factor (1.3 = 30% slower), for
    /// jobs without a --max-slowdown of their own [default: no limit] [env: COHABIT_MAX_SLOWDOWN]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) max_slowdown: Option<String>,
    /// Time after which jobs on an unreachable node are declared lost [default: 5m] [env: COHABIT_LOST_AFTER]
    #[arg(long, value_name = "TIME")]
    pub(crate) lost_after: Option<String>,
    /// Directory on a file system that all nodes share, for the checkpoints of jobs without --checkpoint:
    /// make it with mode 1777 [default: each worker keeps them, and they are carried when a job moves] [env:
    /// COHABIT_SHARED_CHECKPOINT_DIR]
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint_dir: Option<String>,
    /// Largest size of the checkpoints of a job that are carried to the node of its next attempt; 0 for none
    /// [default: 16G] [env: COHABIT_CHECKPOINT_LIMIT]
    #[arg(long, value_name = "SIZE")]
    pub(crate) checkpoint_limit: Option<String>,
    /// Largest number of jobs that one user, who is no admin, runs at once, or none; the others wait
    /// [default: 1000] [env: COHABIT_MAX_RUNNING_JOBS]
    #[arg(long, value_name = "JOBS")]
    pub(crate) max_running_jobs: Option<String>,
    /// Whether users take turns by what they are entitled to: on or off [default: on] [env:
    /// COHABIT_FAIR_SHARE]
    #[arg(long, value_name = "ON|OFF")]
    pub(crate) fair_share: Option<String>,
    /// After how long a shell or a notebook that does nothing gives its place to jobs that wait, or off
    /// [default: 30m] [env: COHABIT_IDLE_STOP]
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle_stop: Option<String>,
    /// Whether names, commands, directories, groups, models and progress of jobs are shown only to their
    /// users and admins: on or off [default: off] [env: COHABIT_PRIVATE_DATA]
    #[arg(long, value_name = "ON|OFF")]
    pub(crate) private_data: Option<String>,
    #[command(flatten)]
    pub(crate) logging: LoggingArguments,
}

// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    #[command(subcommand)]
    pub(crate) verb: WorkerVerb,
}

// Commands on a worker.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerVerb {
    /// Run a worker in the foreground and print one line when it has joined the head
    #[cfg(feature = "worker")]
    Start(Box<WorkerStartArguments>),
    /// Start no new jobs on a node; running jobs continue
    Drain(DrainArguments),
    /// Allow new jobs on a drained node again
    Resume(NodeArguments),
    /// Forget which worker a node belongs to: the next one to join as this node is taken for it
    Unbind(NodeArguments),
}

impl WorkerVerb {
    /// The display flags of commands that print a result.
    pub(crate) fn display(&self) -> Option<&DisplayArguments> {
        match self {
            #[cfg(feature = "worker")]
            WorkerVerb::Start(_) => None,
            WorkerVerb::Drain(arguments) => Some(&arguments.display),
            WorkerVerb::Resume(arguments) | WorkerVerb::Unbind(arguments) => Some(&arguments.display),
        }
    }
}

// Arguments of `worker start`.
#[cfg(feature = "worker")]
#[derive(Debug, Args)]
pub(crate) struct WorkerStartArguments {
    /// Address of the head to join [env: COHABIT_JOIN]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) join: Option<String>,
    /// File that holds a token with the role worker [env: COHABIT_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// State directory of this worker [default: `worker` in the default state directory or in COHABIT_STATE]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) devices: DeviceArguments,
    #[command(flatten)]
    pub(crate) logging: LoggingArguments,
}

// The resources that a worker offers.
#[cfg(feature = "worker")]
#[derive(Debug, Args)]
#[command(next_help_heading = "Worker")]
pub(crate) struct DeviceArguments {
    /// Devices to offer: auto, host:4 (four host slots) or sim:2xH200-141G (simulated GPUs) [default: auto]
    /// [env: COHABIT_DEVICES]
    #[arg(long, value_name = "SPEC")]
    pub(crate) devices: Option<String>,
    /// Largest number of ranks that share a GPU [default: 3] [env: COHABIT_MAX_SHARING]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_sharing: Option<String>,
    /// Largest number of jobs that run on this node at once [default: what its memory and its limits of files
    /// and processes allow] [env: COHABIT_MAX_JOBS]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_jobs: Option<String>,
    /// GPU memory to keep free on a shared GPU [default: 1G] [env: COHABIT_GPU_RESERVE]
    #[arg(long, value_name = "SIZE")]
    pub(crate) gpu_reserve: Option<String>,
    /// Whether to enforce GPU shares with NVIDIA MPS: auto (where MPS works) or off [default: auto] [env:
    /// COHABIT_MPS]
    #[arg(long, value_name = "MODE")]
    pub(crate) mps: Option<String>,
    /// How jobs find their GPUs in CUDA_VISIBLE_DEVICES: auto (by number in PCI order where no other GPU can
    /// be meant, else by UUID), uuid or index [default: auto] [env: COHABIT_DEVICE_IDS]
    #[arg(long, value_name = "FORM")]
    pub(crate) device_ids: Option<String>,
    /// Path of NVIDIA's management library (NVML), if not in the standard location [env:
    /// COHABIT_NVML_LIBRARY]
    #[arg(long, value_name = "FILE")]
    pub(crate) nvml_library: Option<PathBuf>,
    /// Network bandwidth, such as 25g or 3GB/s [default: that of the interface] [env: COHABIT_NETWORK]
    #[arg(long, value_name = "SPEED")]
    pub(crate) network: Option<String>,
    /// Bandwidth between the devices of this node, such as 300GB/s [env: COHABIT_INTERCONNECT]
    #[arg(long, value_name = "SPEED")]
    pub(crate) interconnect: Option<String>,
    /// Name of the node [default: the host name] [env: COHABIT_NAME]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Never run jobs as root, not even those of an admin. A worker that runs as root starts each job under
    /// the account of its user [env: COHABIT_NO_ROOT_JOBS]
    #[arg(long)]
    pub(crate) no_root_jobs: bool,
    /// Least user id of the accounts that jobs may run as; lower ones belong to the system. Applies to a
    /// worker that runs as root [default: 1000] [env: COHABIT_MIN_UID]
    #[arg(long, value_name = "UID")]
    pub(crate) min_uid: Option<String>,
    /// Let a worker that does not run as root run the jobs of all users as its own account; they can then
    /// read each other's files and the worker's secrets. Without it, such a worker serves only the user
    /// whose account it runs as [env: COHABIT_ALLOW_SHARED_ACCOUNT]
    #[arg(long)]
    pub(crate) allow_shared_account: bool,
    /// Let no application listen at a port of this node. An application that starts here stays within the
    /// node, and those of other nodes run no part of theirs here [env: COHABIT_NO_APPLICATION_PORTS]
    #[arg(long)]
    pub(crate) no_application_ports: bool,
    /// How long ranks keep running while the head is unreachable [default: 2m] [env: COHABIT_ORPHAN_GRACE]
    #[arg(long, value_name = "TIME")]
    pub(crate) orphan_grace: Option<String>,
}

// Arguments of `worker drain`.
#[derive(Debug, Args)]
pub(crate) struct DrainArguments {
    /// Name of the node, as shown by `cohabit nodes`
    #[arg(add = ArgValueCompleter::new(completion::nodes))]
    pub(crate) node: String,
    /// Why the node is drained, for everybody who looks at `cohabit nodes`
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Queue the jobs again that still run there after this time [default: let them end]
    #[arg(long, value_name = "TIME", value_parser = crate::values::parse_duration)]
    pub(crate) deadline: Option<Span>,
    /// Drain it at this time: jobs that would end before still start, and what runs then is queued again
    #[arg(long, value_name = "TIME", value_parser = crate::values::parse_begin, conflicts_with = "deadline")]
    pub(crate) by: Option<BeginTime>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `worker drain` and `worker resume`.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// Name of the node, as shown by `cohabit nodes`
    #[arg(add = ArgValueCompleter::new(completion::nodes))]
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// The log of a daemon, which goes to stderr.
#[cfg(feature = "daemon")]
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LoggingArguments {
    /// Log level, or a filter of tracing-subscriber [default: info,tarpc=warn] [env: COHABIT_LOG]
    #[arg(long, value_name = "FILTER")]
    pub(crate) log_level: Option<String>,
    /// Log format: text or json [default: text] [env: COHABIT_LOG_FORMAT]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}
