//! The worker daemon: joins this machine to a cluster, and runs ranks on it by the head's orders.
//!
//! Everything that decides is in the worker core; the actors here give it events and do what it says. The
//! daemon may stop or die at any time: executors hold the ranks, and the next daemon on the same state folder
//! finds them.
//!
//! ```text
//! head ⇄ link ⇄ driver (the core) ⇄ one rank actor for each executor ⇄ socket ⇄ executor
//!                       ⇅
//!                one actor for each GPU's MPS daemon, and the monitor of all GPUs
//! ```

mod checkpoints;
mod devices;
mod driver;
mod ending;
mod environment;
mod executors;
mod gpu;
mod link;
mod logs;
mod machine;
mod network;
mod rank;
mod recovery;
mod rendezvous;
mod retention;
mod spawn;
pub(crate) mod state;

use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cohabit_actor::{ActorSystem, ActorSystemError, ChildSpec};
use cohabit_gpu::mps::MpsError;
use cohabit_net::{Endpoint, LinkError, Token, raise_open_file_limit};
use cohabit_types::{LinkBandwidths, SharingLimits, Span};
use cohabit_worker_core::{Config, Worker};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};

pub use devices::{DeviceSpec, MpsMode, ParseDeviceSpecError};

use crate::files::FileError;
use crate::isolation::{Isolation, RootJobs};
use crate::log::LogLimits;
use driver::WorkerDriver;
use environment::RankContext;
use link::Link;
use machine::Machine;
use retention::Cleaner;
use state::StateDirectory;

/// What the operator of a worker may set.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// `HOST:PORT` of the head.
    pub head: String,
    /// By what right it joins.
    pub token: Token,
    /// Where everything is kept that outlives the daemon.
    pub state_dir: PathBuf,
    /// For people; the host name unless said.
    pub name: Option<String>,
    /// Where other nodes reach this one; the address from which it reaches the head unless said.
    pub address: Option<String>,
    /// What it offers.
    pub devices: DeviceSpec,
    /// What is known of its links; the network's speed is looked up where it is not said.
    pub links: LinkBandwidths,
    /// How far its GPUs may be shared.
    pub sharing: SharingLimits,
    /// Whether they are shared under NVIDIA's MPS.
    pub mps: MpsMode,
    /// NVIDIA's management library, where it is not found by its name.
    pub nvml_library: Option<PathBuf>,
    /// The program that runs `executor DIR`.
    pub executor_program: PathBuf,
    /// Whether it runs jobs as root, if it is root itself.
    pub root_jobs: RootJobs,
    /// How long ranks run on while the head cannot be reached.
    pub orphan_grace: Span,
    /// How often progress is reported at most, and how often the link is tried.
    pub heartbeat: Span,
    /// How much of each rank's output is kept.
    pub log: LogLimits,
    /// How long output and checkpoints are kept after the end.
    pub log_retention: Span,
}

impl WorkerOptions {
    /// The default settings for a worker of this head.
    #[must_use]
    pub fn new(head: String, token: Token, state_dir: PathBuf, executor_program: PathBuf) -> WorkerOptions {
        WorkerOptions {
            head,
            token,
            state_dir,
            name: None,
            address: None,
            devices: DeviceSpec::Auto,
            links: LinkBandwidths::default(),
            sharing: SharingLimits::default(),
            mps: MpsMode::default(),
            nvml_library: None,
            executor_program,
            root_jobs: RootJobs::default(),
            orphan_grace: Span::from_secs(120),
            heartbeat: Span::from_secs(1),
            log: LogLimits::default(),
            log_retention: Span::from_secs(7 * 24 * 3600),
        }
    }
}

/// Why there is no worker, or no worker any more.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// Two daemons must not share a state folder.
    #[error(
        "another worker runs on the state folder '{}': \
         stop it, or give this one a folder of its own with --state",
        .0.display()
    )]
    StateInUse(PathBuf),
    /// The state folder cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no private place for the MPS daemon of a GPU.
    #[error(transparent)]
    Mps(#[from] MpsError),
    /// The machine does not tell what it is.
    #[error("this machine does not tell what it is: {0}")]
    Machine(io::Error),
    /// The head does not let this worker join, and trying again does not help.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The daemon is at fault.
    #[error(transparent)]
    Failed(#[from] ActorSystemError),
    /// The daemon is at fault, and cannot even say how.
    #[error("the worker daemon ended though nobody stopped it: {0}")]
    Ended(String),
}

/// A worker daemon at work.
#[derive(Debug)]
pub struct WorkerDaemon {
    name: String,
    linked: watch::Receiver<bool>,
    refused: mpsc::Receiver<LinkError>,
    stop: oneshot::Sender<()>,
    /// Until its end was told.
    running: Option<JoinHandle<Result<(), ActorSystemError>>>,
}

/// How long the daemon's parts may take to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Events that may wait for the core.
const DRIVER_MAILBOX: usize = 1024;

/// What the link may have to tell itself: that it ended, and that it is time to dial.
const LINK_MESSAGES: usize = 8;

impl WorkerDaemon {
    /// Takes the state folder, looks at the devices, finds what an earlier daemon left, and begins to dial
    /// the head.
    ///
    /// # Errors
    /// When the state folder cannot be used, or is in use. A head that does not answer is no error: it is
    /// tried again.
    pub async fn start(options: WorkerOptions) -> Result<WorkerDaemon, WorkerError> {
        raise_open_file_limit();
        let (state, lock) = StateDirectory::open(&options.state_dir)?;
        let isolation = Isolation::establish(&state, options.root_jobs)?;
        let machine = Machine::look(&options, state.node(), isolation.report()).await?;
        let name = machine.name.clone();
        let worker = Worker::new(Config { heartbeat: options.heartbeat, devices: machine.devices.clone() });
        let rank_context = RankContext::new(&options, &state, isolation, &machine.devices)?;
        let (linked, is_linked) = watch::channel(false);
        let (refuser, refused) = mpsc::channel(1);

        let system = ActorSystem::new();
        system.spawn_once(ChildSpec::new("cleaner", 1), Cleaner::new(state.clone(), options.log_retention));
        let driver = WorkerDriver::new(worker, rank_context);
        let driver = system.spawn_essential(ChildSpec::new("driver", DRIVER_MAILBOX), driver);
        let endpoint = Endpoint { address: options.head, token: options.token };
        let link = Link::new(endpoint, machine, state, driver, options.heartbeat, linked, refuser);
        system.spawn(ChildSpec::new("link", LINK_MESSAGES), move || link.clone());

        let (stop, stopped) = oneshot::channel();
        // A daemon that is dropped stops as well.
        let signal = async { _ = stopped.await };
        let running = tokio::spawn(async move {
            let _until_all_has_stopped = lock;
            system.run_until(signal, STOP_GRACE).await
        });
        Ok(WorkerDaemon { name, linked: is_linked, refused, stop, running: Some(running) })
    }

    /// The name by which the cluster knows this node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the head has welcomed this worker.
    ///
    /// # Errors
    /// When it never will.
    pub async fn joined(&mut self) -> Result<(), WorkerError> {
        let mut linked = self.linked.clone();
        tokio::select! {
            Ok(_) = linked.wait_for(|linked| *linked) => Ok(()),
            error = self.failed() => Err(error),
        }
    }

    /// Waits until the daemon cannot go on.
    pub async fn failed(&mut self) -> WorkerError {
        let ended = async {
            match &mut self.running {
                Some(running) => running.await,
                None => pending().await,
            }
        };
        tokio::select! {
            Some(refused) = self.refused.recv() => refused.into(),
            ended = ended => {
                self.running = None;
                stopped_early(ended)
            }
        }
    }

    /// Stops the daemon. Executors go on, and with them the ranks.
    ///
    /// # Errors
    /// When parts of it did not stop in order.
    pub async fn stop(self) -> Result<(), WorkerError> {
        // If the daemon has ended already, nobody listens.
        let _ = self.stop.send(());
        match self.running {
            Some(running) => Ok(running.await.map_err(|panic| WorkerError::Ended(panic.to_string()))??),
            None => Ok(()),
        }
    }
}

/// The daemon ended though nobody stopped it.
fn stopped_early(ended: Result<Result<(), ActorSystemError>, JoinError>) -> WorkerError {
    match ended {
        Ok(Err(error)) => error.into(),
        Ok(Ok(())) => WorkerError::Ended("all its parts stopped in order".to_owned()),
        Err(panic) => WorkerError::Ended(panic.to_string()),
    }
}
