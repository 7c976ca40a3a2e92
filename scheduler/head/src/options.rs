//! What a head's operator may choose.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use cohabit_policy::interference::DEFAULT_MAX_SLOWDOWN;
use cohabit_scheduler_core::Config;
use cohabit_types::{Slowdown, Span};

use crate::InterferenceSource;

/// What a head's operator may choose.
#[derive(Debug, Clone)]
pub struct HeadOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder that everything the head must not lose lies in.
    pub state_dir: PathBuf,
    /// The scheduling policy, by its name.
    pub policy: String,
    /// What the head goes by when jobs share GPUs, until it has learned better.
    pub interference: InterferenceSource,
    /// How much neighbours may slow down a job that does not say.
    pub max_slowdown: Slowdown,
    /// The model is learned anew after so many rows that are new: jobs in company that was not seen before. 0
    /// for never.
    pub refit_after: u64,
    /// The planner hears of what was learned at most once in this time.
    pub learn_every: Duration,
    /// The rules of the cluster.
    pub config: Config,
    /// How long the policy may take over a plan before a cheap one takes its place.
    pub plan_limit: Duration,
    /// A worker that is silent for longer has lost its link.
    pub silence_limit: Duration,
    /// How long a client that watches jobs waits for an answer.
    pub watch_limit: Duration,
    /// After so many events, or half as many as there are jobs in memory, the journal keeps a snapshot.
    pub snapshot_every: u64,
    /// How long the history keeps jobs that ended.
    pub history_retention: Span,
}

impl HeadOptions {
    /// The defaults, with the state in this folder.
    #[must_use]
    pub fn new(state_dir: impl Into<PathBuf>) -> HeadOptions {
        HeadOptions {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, cohabit_net::DEFAULT_PORT)),
            state_dir: state_dir.into(),
            policy: "hybrid".to_owned(),
            interference: InterferenceSource::default(),
            max_slowdown: DEFAULT_MAX_SLOWDOWN,
            refit_after: 50,
            learn_every: Duration::from_secs(5),
            config: Config::default(),
            plan_limit: Duration::from_secs(2),
            silence_limit: Duration::from_secs(15),
            watch_limit: Duration::from_secs(20),
            snapshot_every: 10_000,
            history_retention: Span::from_secs(365 * 86_400),
        }
    }
}
