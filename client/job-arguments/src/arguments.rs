//! Flags that describe a job. A script may set the same flags in `#COHABIT` lines.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cohabit_client::types::{
    Array, Bytes, GpuRequest, LaunchMode, Qos, Slowdown, Span, StallAction, WarningSignal,
};

use crate::values::{
    self, AmountRange, BeginTime, DependencyArgument, EnvArgument, ExportArgument, NodeCount, NotifyArgument,
};

/// The headings of flags in the help of `submit` and `run`, in this order.
pub const COMMON: &str = "Common";
const RESOURCES: &str = "Resources";
pub const ORDER: &str = "Start and order";
const ARRAYS: &str = "Arrays from files";
const STOPPING: &str = "Stops, retries and checkpoints";
const OUTPUT: &str = "Output and environment";
const PREDICTION: &str = "For predictions";

// Flags that describe a job.
#[derive(Debug, Default, Clone, Args)]
pub struct JobArguments {
    /// Name of the job [default: that of the script or module that the command runs, or of its program]
    #[arg(help_heading = COMMON, long, short = 'J')]
    pub name: Option<String>,
    /// Total number of GPUs on all nodes: 0.5, 1, 4, or 0 for none [default: one per node]
    #[arg(help_heading = COMMON, long, value_name = "COUNT", value_parser = values::parse_gpus)]
    pub gpus: Option<GpuRequest>,
    /// GPUs per node, as in `#SBATCH --gres=gpu:N`
    #[arg(help_heading = COMMON, long, value_name = "COUNT", hide = true)]
    pub gpus_per_node: Option<u32>,
    /// Memory needed on each GPU, such as 20G
    #[arg(help_heading = COMMON, long, value_name = "SIZE", value_parser = values::parse_memory_amount)]
    pub gpu_mem: Option<Bytes>,
    /// Time limit of an attempt: 2h, 90s, 02:00:00, 1-12:00:00
    #[arg(help_heading = COMMON)]
    #[arg(long, short = 't', value_name = "TIME", value_parser = values::parse_duration)]
    pub time: Option<Span>,
    /// Run one member for each index: 1-100%4 (at most 4 at once), 0-9:3,12
    #[arg(help_heading = COMMON)]
    #[arg(long, short = 'a', value_name = "INDICES", value_parser = values::parse_array)]
    pub array: Option<Array>,
    /// Start after these jobs: ID (succeeded), afterany:ID (ended), afternotok:ID (failed)
    #[arg(help_heading = COMMON)]
    #[arg(long, short = 'd', value_name = "ID", value_delimiter = ',', value_parser = values::parse_dependency)]
    pub depends_on: Vec<DependencyArgument>,
    /// Working directory of the job [default: the current directory]
    #[arg(help_heading = COMMON, long, short = 'D', value_name = "DIR")]
    pub workdir: Option<PathBuf>,
    /// Set an environment variable: K=V, or K to copy the value from this shell
    #[arg(help_heading = COMMON, long, value_name = "K[=V]", value_parser = values::parse_variable)]
    pub env: Vec<EnvArgument>,
    /// Run the job from a copy of its code as it is now, later edits do not change it: the files that git
    /// tracks or does not ignore, or 'all' files of the working directory [env: COHABIT_SNAPSHOT]
    #[arg(help_heading = COMMON)]
    #[arg(long, value_name = "CHOICE", value_enum, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "git")]
    pub snapshot: Option<SnapshotArgument>,
    /// Number of nodes, or 'any' to place whole GPUs on whichever nodes need the least network traffic
    /// [default: 1]
    #[arg(help_heading = RESOURCES)]
    #[arg(long, short = 'N', value_name = "COUNT", value_parser = values::parse_nodes)]
    pub nodes: Option<NodeCount>,
    /// CPU cores per node; a range such as 2..12 lets the scheduler change them while the job runs
    #[arg(help_heading = RESOURCES)]
    #[arg(long, short = 'c', value_name = "COUNT", value_parser = values::parse_cores)]
    pub cpus: Option<AmountRange<u32>>,
    /// Host memory per node, such as 64G; a range such as 20G..125G lets the scheduler change it
    #[arg(help_heading = RESOURCES, long, value_name = "SIZE", value_parser = values::parse_memory)]
    pub mem: Option<AmountRange<Bytes>>,
    /// Whether to start one rank per node or one per GPU
    #[arg(help_heading = RESOURCES, long, value_name = "MODE", value_enum)]
    pub launch: Option<LaunchArgument>,
    /// Do not share the job's GPUs with other jobs
    #[arg(help_heading = RESOURCES, long)]
    pub exclusive: bool,
    /// Share a GPU only on nodes that enforce the limits of each share
    #[arg(help_heading = RESOURCES, long)]
    pub enforced: bool,
    /// Limit computation to the share of the GPU, even while other jobs leave the rest idle
    #[arg(help_heading = RESOURCES, long)]
    pub cap_compute: bool,
    /// Processes per rank that use its GPU; --gpu-mem is divided equally among them [default: 1]
    #[arg(help_heading = RESOURCES, long, value_name = "COUNT")]
    pub gpu_processes: Option<u32>,
    /// Largest slowdown that jobs sharing its GPU may cause, as a factor (1.3 = 30% slower) [default: the
    /// limit of the cluster]
    #[arg(help_heading = RESOURCES, long, value_name = "FACTOR")]
    pub max_slowdown: Option<Slowdown>,
    /// Priority; jobs with a higher number start earlier [default: 0]
    #[arg(help_heading = ORDER, long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// When the job's turn comes: low starts where nobody else wants the place and costs half; high comes
    /// sooner and costs twice as much [default: normal]
    #[arg(help_heading = ORDER, long, value_name = "LEVEL", value_enum)]
    pub qos: Option<QosArgument>,
    /// Refuse the job unless this is the project of its user
    #[arg(help_heading = ORDER, long, value_name = "NAME")]
    pub project: Option<String>,
    /// Earliest start time: now+1h, 08:00, 2026-11-22T08:00:00Z
    #[arg(help_heading = ORDER, long, value_name = "TIME", value_parser = values::parse_begin)]
    pub begin: Option<BeginTime>,
    /// Hold the job until `cohabit release`
    #[arg(help_heading = ORDER, long, short = 'H')]
    pub hold: bool,
    /// Run one member for each line of a file that is not blank; a member finds its line in COHABIT_ENTRY,
    /// and in place of each argument {}
    #[arg(help_heading = ARRAYS, long, value_name = "FILE", conflicts_with_all = ["array", "from_json"])]
    pub each_line: Option<PathBuf>,
    /// Run one member for each element of a file with a JSON array; a member finds its element as JSON in
    /// COHABIT_ENTRY, and the keys of objects are columns of `list --members-of`
    #[arg(help_heading = ARRAYS, long, value_name = "FILE", conflicts_with = "array")]
    pub from_json: Option<PathBuf>,
    /// Run at most this many members of the array at once
    #[arg(help_heading = ARRAYS, long, value_name = "COUNT")]
    pub at_once: Option<u32>,
    /// Number of further attempts after a failure
    #[arg(help_heading = STOPPING, long, value_name = "COUNT")]
    pub retries: Option<u32>,
    /// Queue the job again when it reaches its time limit: it runs in slices of --time, each of which goes on
    /// from the checkpoint of the last
    #[arg(help_heading = STOPPING, long)]
    pub requeue_on_timeout: bool,
    /// Count the job as stalled when it reports no step for this long
    #[arg(help_heading = STOPPING, long, value_name = "TIME", value_parser = values::parse_duration)]
    pub stall_timeout: Option<Span>,
    /// What to do with a stalled job [default: warn]
    #[arg(help_heading = STOPPING, long, value_name = "ACTION", value_enum)]
    pub on_stall: Option<StallArgument>,
    /// Checkpoint directory [default: a directory of the job on its worker]
    #[arg(help_heading = STOPPING, long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Signal to send before SIGTERM when the job is stopped: SIGUSR1@60s (60 s before)
    #[arg(help_heading = STOPPING)]
    #[arg(long, value_name = "SIGNAL[@TIME]", value_parser = values::parse_stop_signal)]
    pub stop_signal: Option<WarningSignal>,
    /// Allow the scheduler to stop the job for a more urgent one and continue it later from its checkpoint
    /// [default: only with --stop-signal or --qos low]
    #[arg(help_heading = STOPPING, long, overrides_with = "no_preemptible")]
    pub preemptible: bool,
    /// Never stop the job for a more urgent one, even with --stop-signal
    #[arg(help_heading = STOPPING, long, overrides_with = "preemptible")]
    pub no_preemptible: bool,
    /// Time between SIGTERM and SIGKILL when the job is stopped [default: 30s]
    #[arg(help_heading = STOPPING, long, value_name = "TIME", value_parser = values::parse_duration)]
    pub grace: Option<Span>,
    /// Also write standard output to this file, and standard error unless --stderr names another. As with
    /// sbatch, %j is the job, %A and %a array and index, %x the name, %N the host, %u the user, %t the rank;
    /// the first attempt empties the file, and later ones append
    #[arg(help_heading = OUTPUT, long, value_name = "FILE")]
    pub stdout: Option<PathBuf>,
    /// Also write standard error to this file, with the patterns of --stdout
    #[arg(help_heading = OUTPUT, long, value_name = "FILE")]
    pub stderr: Option<PathBuf>,
    /// Send a message on these events, by a channel that the admins have set up [default: their default one]:
    /// end,fail,stall@CHANNEL; the events are start, end, fail, timeout, oom, stall, requeue, reclaim
    #[arg(help_heading = OUTPUT)]
    #[arg(long, value_name = "EVENTS[@CHANNEL]", value_parser = values::parse_notify)]
    pub notify: Vec<NotifyArgument>,
    /// Variables copied from this shell, as in `#SBATCH --export`: ALL, NONE, K, K=V
    #[arg(help_heading = OUTPUT)]
    #[arg(long, value_name = "LIST", hide = true, value_parser = values::parse_export)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "ALL")]
    pub export: Option<ExportArgument>,
    /// Also set SLURM_* environment variables, as for scripts with `#SBATCH` lines
    #[arg(help_heading = OUTPUT, long)]
    pub slurm_env: bool,
    /// Partition, as in `#SBATCH --partition`: a label that `show` prints
    #[arg(help_heading = OUTPUT, long, value_name = "NAME", hide = true)]
    pub partition: Option<String>,
    /// Group of recurring jobs; predictions learn from earlier jobs of the same group
    #[arg(help_heading = PREDICTION, long, value_name = "NAME")]
    pub group: Option<String>,
    /// File that describes the model to train
    #[arg(help_heading = PREDICTION, long, value_name = "FILE.toml")]
    pub model: Option<PathBuf>,
    /// Number of training iterations, if known
    #[arg(help_heading = PREDICTION, long, value_name = "COUNT")]
    pub iterations: Option<u64>,
}

impl JobArguments {
    /// Whether they say how many GPUs the job gets.
    pub const fn names_gpus(&self) -> bool {
        self.gpus.is_some() || self.gpus_per_node.is_some()
    }

    /// Whether the scheduler may stop the job: as the flags say, or else if it asks for a warning signal, or
    /// only for places that nobody else wants.
    pub const fn is_preemptible(&self) -> bool {
        let is_implied = self.stop_signal.is_some() || matches!(self.qos, Some(QosArgument::Low));
        self.preemptible || (is_implied && !self.no_preemptible)
    }
}

/// Which copy of its code a job runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotArgument {
    /// The files that git tracks or does not ignore
    Git,
    /// All files of the working directory
    All,
    /// No copy: the job runs in the working directory as that is when it starts
    No,
}

impl SnapshotArgument {
    /// Parses the setting.
    pub fn parse(text: &str) -> Result<SnapshotArgument, String> {
        SnapshotArgument::from_str(text, false)
            .map_err(|_| format!("'{text}' is none of the choices: write git, all or no"))
    }
}

/// When a job's turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QosArgument {
    /// Where nobody else wants the place
    Low,
    /// In its user's turn
    Normal,
    /// Sooner than its user's turn
    High,
}

impl From<QosArgument> for Qos {
    fn from(word: QosArgument) -> Qos {
        match word {
            QosArgument::Low => Qos::Low,
            QosArgument::Normal => Qos::Normal,
            QosArgument::High => Qos::High,
        }
    }
}

/// What happens to a stalled job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StallArgument {
    /// Its history and `cohabit explain` say so; it goes on
    Warn,
    /// Stop it and queue it again
    Requeue,
}

impl From<StallArgument> for StallAction {
    fn from(word: StallArgument) -> StallAction {
        match word {
            StallArgument::Warn => StallAction::Warn,
            StallArgument::Requeue => StallAction::Requeue,
        }
    }
}

/// Which ranks are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LaunchArgument {
    /// One rank per node; the command starts its own processes
    PerNode,
    /// One rank per GPU
    PerGpu,
}

impl From<LaunchArgument> for LaunchMode {
    fn from(word: LaunchArgument) -> LaunchMode {
        match word {
            LaunchArgument::PerNode => LaunchMode::PerNode,
            LaunchArgument::PerGpu => LaunchMode::PerGpu,
        }
    }
}
