//! The settings of a head.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use cohabit_scheduler_core::Config;
use cohabit_types::{Bytes, CHECKPOINT_JOB, PrivateData, Slowdown, Span};

use crate::{InterferenceSource, RequestLimits};

/// The settings of a head.
#[derive(Debug, Clone)]
pub struct HeadOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The state directory, which holds everything that the head must not lose.
    pub state_dir: PathBuf,
    /// Whether to start an empty cluster where one ran whose journal is missing.
    pub new_cluster: bool,
    /// The scheduling policy, by its name.
    pub policy: String,
    /// The predictor of interference that is used until the head has trained a better one.
    pub interference: InterferenceSource,
    /// The tables of how much cores and host memory speed jobs up, for a policy that tunes shares: a file, or
    /// a directory of models.
    pub sensitivity: Option<PathBuf>,
    /// The directory of trained agents that decide for the policy `maifs`; without it, its teacher decides.
    pub agents: Option<PathBuf>,
    /// The largest slowdown that neighbors may cause to a job that sets no limit.
    pub max_slowdown: Option<Slowdown>,
    /// A model is trained after this many new samples, which are members of co-location sets that were not
    /// observed before; 0 turns training off.
    pub refit_after: u64,
    /// The shortest time between two updates of the planner with new observations.
    pub learn_every: Duration,
    /// The settings of the scheduler core.
    pub config: Config,
    /// How long the policy may take for a plan before jobs are planned first come, first served.
    pub plan_limit: Duration,
    /// A worker that sends nothing for longer than this loses its link.
    pub silence_limit: Duration,
    /// How long a query that watches jobs waits for a change.
    pub watch_limit: Duration,
    /// A snapshot is taken after this many events, or half as many as there are jobs in memory, whichever
    /// is more.
    pub snapshot_every: u64,
    /// How long the history keeps ended jobs.
    pub history_retention: Span,
    /// How long the sums of each day are kept for reports.
    pub report_retention: Span,
    /// Where checkpoints of jobs go.
    pub checkpoints: CheckpointOptions,
    /// What one request and one user may take.
    pub limits: RequestLimits,
    /// Whether users see the particulars of each other's jobs.
    pub private_data: PrivateData,
    /// How long a new token of a user is good for unless an admin says otherwise; none if for ever.
    pub user_token_lifetime: Option<Span>,
}

/// Jobs of one user that run at once, unless an admin says otherwise. Each takes an executor, four files of
/// its worker and about a megabyte, and a job without GPUs, cores or memory starts wherever a node is.
const RUNNING_JOBS: u64 = 1_000;

/// Where checkpoints go of jobs that name no directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// The path of a directory that all nodes share. Without it each worker keeps the checkpoints of its
    /// ranks.
    pub directory: Option<String>,
    /// The most that a worker keeps for a job and that is carried to the node of its next attempt; 0 for
    /// nothing.
    pub limit: Bytes,
}

/// About two minutes over a network of a gigabit a second.
const CHECKPOINT_LIMIT: Bytes = Bytes(16 << 30);

impl Default for CheckpointOptions {
    fn default() -> CheckpointOptions {
        CheckpointOptions { directory: None, limit: CHECKPOINT_LIMIT }
    }
}

impl CheckpointOptions {
    /// The directory that a job of this cluster names, if it names none itself. Numbers of jobs begin again
    /// with a new cluster, so the directory carries the first digits of the cluster's id.
    pub(crate) fn directory_of_jobs(&self, cluster: &str) -> Option<String> {
        let cluster = cluster.get(..CLUSTER_DIGITS).unwrap_or(cluster);
        self.directory
            .as_ref()
            .map(|folder| format!("{}/{CHECKPOINT_JOB}-{cluster}", folder.trim_end_matches('/')))
    }
}

/// The digits of the id of a cluster that tell it from others.
const CLUSTER_DIGITS: usize = 8;

impl HeadOptions {
    /// The default settings, with this state directory.
    #[must_use]
    pub fn new(state_dir: impl Into<PathBuf>) -> HeadOptions {
        HeadOptions {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, cohabit_net::DEFAULT_PORT)),
            state_dir: state_dir.into(),
            new_cluster: false,
            policy: "hybrid".to_owned(),
            interference: InterferenceSource::default(),
            sensitivity: None,
            agents: None,
            max_slowdown: None,
            refit_after: 50,
            learn_every: Duration::from_secs(5),
            config: Config { max_running_jobs: Some(RUNNING_JOBS), ..Config::default() },
            plan_limit: Duration::from_secs(2),
            silence_limit: Duration::from_secs(15),
            watch_limit: Duration::from_secs(20),
            snapshot_every: 10_000,
            // A clock that was wrong for a while keeps new connections out for an hour at most.
            history_retention: Span::from_secs(365 * 86_400),
            report_retention: Span::from_secs(730 * 86_400),
            checkpoints: CheckpointOptions::default(),
            limits: RequestLimits::default(),
            private_data: PrivateData::default(),
            user_token_lifetime: Some(Span::from_secs(365 * 86_400)),
        }
    }
}
