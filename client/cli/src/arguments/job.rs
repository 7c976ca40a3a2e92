//! What a job is and needs: the flags that a script may carry as well, in `#COHABIT` lines.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cohabit_client::proto::{Array, Bytes, GpuRequest, LaunchMode, Slowdown, Span, WarningSignal};

use crate::values::{self, BeginTime, DependencyArgument, EnvArgument, NodeCount};

// Flags that describe a job.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Job")]
pub(crate) struct JobArguments {
    /// Name, for people; the command's name without it
    #[arg(long, short = 'J')]
    pub(crate) name: Option<String>,
    /// GPUs on all nodes together: 0.5, 1, 4, or 0 for none; one on each node without it
    #[arg(long, value_name = "COUNT", value_parser = values::gpus)]
    pub(crate) gpus: Option<GpuRequest>,
    /// GPUs on each node: what `#SBATCH --gres=gpu:N` means
    #[arg(long, value_name = "COUNT", hide = true)]
    pub(crate) gpus_per_node: Option<u32>,
    /// Memory on each GPU: 20G
    #[arg(long, value_name = "SIZE")]
    pub(crate) gpu_mem: Option<Bytes>,
    /// Let nobody else join the job's GPUs
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Share a GPU only where the limits of the share are enforced
    #[arg(long)]
    pub(crate) enforced: bool,
    /// Compute on no more of the GPU than the share; without it, also on what neighbours leave idle
    #[arg(long)]
    pub(crate) cap_compute: bool,
    /// Processes of a rank that use its GPU; each may take an equal part of --gpu-mem; 1 without it
    #[arg(long, value_name = "COUNT")]
    pub(crate) gpu_processes: Option<u32>,
    /// How many times as long as alone its neighbours on the GPU may make a step take, like 1.2; what the
    /// cluster allows without it
    #[arg(long, value_name = "FACTOR")]
    pub(crate) max_slowdown: Option<Slowdown>,
    /// Nodes, all at once, or 'any' to let whole GPUs lie wherever little crosses the network; 1 without it
    #[arg(long, short = 'N', value_name = "COUNT", value_parser = values::nodes)]
    pub(crate) nodes: Option<NodeCount>,
    /// Processor cores on each node
    #[arg(long, short = 'c', value_name = "COUNT")]
    pub(crate) cpus: Option<u32>,
    /// Host memory on each node: 64G
    #[arg(long, value_name = "SIZE")]
    pub(crate) mem: Option<Bytes>,
    /// How long an attempt may run: 2h, 90s, 02:00:00, 1-12:00:00
    #[arg(long, short = 't', value_name = "TIME", value_parser = values::span)]
    pub(crate) time: Option<Span>,
    /// The larger, the earlier; 0 without it
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// One member for each index: 1-100%4 (at most 4 at once), 0-9:3,12
    #[arg(long, short = 'a', value_name = "INDICES", value_parser = values::array)]
    pub(crate) array: Option<Array>,
    /// Wait for these jobs: ID succeeded, afterany:ID ended, afternotok:ID failed
    #[arg(long, short = 'd', value_name = "ID", value_delimiter = ',', value_parser = values::dependency)]
    pub(crate) depends_on: Vec<DependencyArgument>,
    /// Not before: now+1h, 08:00, 2026-11-22T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = values::begin)]
    pub(crate) begin: Option<BeginTime>,
    /// Attempts after a failed one
    #[arg(long, value_name = "COUNT")]
    pub(crate) retries: Option<u32>,
    /// Folder to start in; the present one without it
    #[arg(long, short = 'D', value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// Set a variable, or take it over from here: K=V, K
    #[arg(long, value_name = "K[=V]", value_parser = values::variable)]
    pub(crate) env: Vec<EnvArgument>,
    /// Jobs that recur carry the same group; predictions learn from earlier ones
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// Description of what is trained
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) model: Option<PathBuf>,
    /// Training iterations, where they are known
    #[arg(long, value_name = "COUNT")]
    pub(crate) iterations: Option<u64>,
    /// Folder for checkpoints; without it each job has one of its own on the worker
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Announce a stop by a signal ahead of SIGTERM: SIGUSR1@60s
    #[arg(long, value_name = "SIGNAL[@TIME]", value_parser = values::stop_signal)]
    pub(crate) stop_signal: Option<WarningSignal>,
    /// How long the job may take to end after SIGTERM, before it is killed; 30s without it
    #[arg(long, value_name = "TIME", value_parser = values::span)]
    pub(crate) grace: Option<Span>,
    /// How ranks are started: one on each node, or one for each GPU
    #[arg(long, value_name = "WAY", value_enum)]
    pub(crate) launch: Option<LaunchArgument>,
    /// Do not start it before it is released
    #[arg(long, short = 'H')]
    pub(crate) hold: bool,
    /// Give the job SLURM_* variables as well
    #[arg(long)]
    pub(crate) slurm_env: bool,
}

/// How ranks are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LaunchArgument {
    /// One rank on each node; the command starts its own processes
    PerNode,
    /// One rank for each GPU
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
