//! The settings of a worker daemon.

use std::path::PathBuf;

use cohabit_host::log::LogLimits;
use cohabit_net::Token;
use cohabit_types::{Bytes, LinkBandwidths, SharingLimits, Span};

use crate::devices::{DeviceIds, DeviceSpec, MpsMode};
use crate::executor_program::ExecutorProgram;
use crate::isolation::AccountOptions;

/// The settings of a worker daemon.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// `HOST:PORT` of the head.
    pub head: String,
    /// The token that lets it join.
    pub token: Token,
    /// The state directory: everything that outlives the daemon.
    pub state_dir: PathBuf,
    /// The name shown to people; by default the host name.
    pub name: Option<String>,
    /// The address at which other nodes reach this one; by default the one from which it reaches the head.
    pub address: Option<String>,
    /// The devices it offers.
    pub devices: DeviceSpec,
    /// Bandwidths of its links; the network's is read from the kernel if it is not given.
    pub links: LinkBandwidths,
    /// How far its GPUs may be shared.
    pub sharing: SharingLimits,
    /// The most jobs that it runs at once; by default as many as the limits of this host allow.
    pub max_jobs: Option<u32>,
    /// Whether applications may listen at ports of this host for their processes on other nodes.
    pub application_ports: bool,
    /// Whether GPUs are shared under NVIDIA's MPS.
    pub mps: MpsMode,
    /// How ranks find their GPUs.
    pub device_ids: DeviceIds,
    /// The path of NVIDIA's management library, if not the one with the default name.
    pub nvml_library: Option<PathBuf>,
    /// The program that runs `executor DIR`; by default the one that runs the daemon.
    pub executor_program: ExecutorProgram,
    /// As which accounts it runs jobs.
    pub accounts: AccountOptions,
    /// How long ranks keep running while the head cannot be reached.
    pub orphan_grace: Span,
    /// How often progress is reported at most, and how often heartbeats are sent.
    pub heartbeat: Span,
    /// How much of each rank's output is kept.
    pub log: LogLimits,
    /// How much of what ended jobs leave is kept.
    pub retention: RetentionOptions,
}

/// How much of what ended jobs leave is kept.
#[derive(Debug, Clone, Copy)]
pub struct RetentionOptions {
    /// How long output and checkpoints are kept.
    pub age: Span,
    /// The most that the output of all ended ranks takes on the disk; by default a tenth of the file system,
    /// at most 10 GiB, and no less than one rank may print.
    pub bytes: Option<Bytes>,
    /// The most ended ranks whose output is kept; by default as many as a tenth of the files that the file
    /// system can hold allows, at most 100,000.
    pub ranks: Option<usize>,
    /// How long the directory of an ended rank stays as it is, before all is removed that is not kept.
    pub delay: Span,
}

impl Default for RetentionOptions {
    fn default() -> RetentionOptions {
        RetentionOptions {
            age: Span::from_secs(7 * 24 * 3600),
            bytes: None,
            ranks: None,
            delay: Span::from_secs(60),
        }
    }
}

impl WorkerOptions {
    /// The default settings for a worker of this head.
    #[must_use]
    pub fn new(head: String, token: Token, state_dir: PathBuf) -> WorkerOptions {
        WorkerOptions {
            head,
            token,
            state_dir,
            name: None,
            address: None,
            devices: DeviceSpec::Auto,
            links: LinkBandwidths::default(),
            sharing: SharingLimits::default(),
            max_jobs: None,
            application_ports: true,
            mps: MpsMode::default(),
            device_ids: DeviceIds::default(),
            nvml_library: None,
            executor_program: ExecutorProgram::Own,
            accounts: AccountOptions::default(),
            orphan_grace: Span::from_secs(120),
            heartbeat: Span::from_secs(1),
            log: LogLimits::default(),
            retention: RetentionOptions::default(),
        }
    }
}
