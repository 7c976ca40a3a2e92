//! Starts and stops the daemon's actors.

use std::future::pending;
use std::time::Duration;

use cohabit_actor::{ActorSystem, ActorSystemError, ChildSpec, blocking};
use cohabit_host::state_lock::StateLock;
use cohabit_net::{Endpoint, LinkError, raise_open_file_limit};
use cohabit_worker_core::{Config, Worker};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};

use crate::acknowledgements::Acknowledgements;
use crate::checkpoints::CheckpointArchives;
use crate::cleaner::Cleaner;
use crate::code::CodeCopies;
use crate::copies::Copies;
use crate::driver::WorkerDriver;
use crate::error::WorkerError;
use crate::gpu::{GpuNumbers, MpsDirectories};
use crate::isolation::Isolator;
use crate::link::HeadLinkActor;
use crate::machine_info::MachineInfo;
use crate::options::WorkerOptions;
use crate::rank_context::RankContext;
use crate::recovery::{self, LeftRank};
use crate::search_path::search_path;
use crate::state_directory::StateDirectory;

/// A running worker daemon.
#[derive(Debug)]
pub struct WorkerDaemon {
    name: String,
    linked: watch::Receiver<bool>,
    refused: mpsc::Receiver<LinkError>,
    stop: oneshot::Sender<()>,
    /// `None` once its end was reported.
    running: Option<JoinHandle<Result<(), ActorSystemError>>>,
}

/// How long the actors may take to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Messages that may be queued for the driver.
const DRIVER_MAILBOX: usize = 1024;

/// Messages that the link may queue for itself: the connection has ended, and it is time to connect.
const LINK_MESSAGES: usize = 8;

impl WorkerDaemon {
    /// Locks the state directory, detects the devices, recovers the ranks that an earlier daemon left, and
    /// starts to connect to the head.
    ///
    /// # Errors
    /// When the state directory cannot be used, is in use, or holds ranks of a later version. A head that
    /// does not answer is no error: the daemon tries again.
    pub async fn start(options: WorkerOptions) -> Result<WorkerDaemon, WorkerError> {
        raise_open_file_limit();
        let (ended, ended_ranks) = mpsc::unbounded_channel();
        let acknowledgements = Acknowledgements::start(ended);
        let prepared = blocking(move || prepare(options, acknowledgements)).await?;
        let PreparedWorker { options, state, lock, machine, rank_context, archives, left } = prepared;
        let name = machine.name.clone();
        let copies =
            Copies::new(state.clone(), rank_context.isolation.clone(), options.executor_program.clone());
        let worker = Worker::new(Config { heartbeat: options.heartbeat, devices: machine.devices.clone() });
        let (linked, is_linked) = watch::channel(false);
        let (refuser, refused) = mpsc::channel(1);

        let system = ActorSystem::new();
        let (folder, retention, of_one_rank) = (state.clone(), options.retention, options.log.cap);
        let cleaner = blocking(move || Cleaner::new(folder, &retention, of_one_rank, ended_ranks)).await;
        system.spawn_once(ChildSpec::new("cleaner", 1), cleaner);
        let driver = WorkerDriver::new(worker, rank_context, left);
        let driver = system.spawn_essential(ChildSpec::new("driver", DRIVER_MAILBOX), driver);
        let endpoint = Endpoint { address: options.head, token: options.token };
        let stored = (state, archives, copies);
        let link = HeadLinkActor::new(endpoint, machine, stored, driver, options.heartbeat, linked, refuser);
        system.spawn(ChildSpec::new("link", LINK_MESSAGES), move || link.clone());

        let (stop, stopped) = oneshot::channel();
        // Dropping the daemon stops it, too.
        let signal = async { _ = stopped.await };
        let running = tokio::spawn(async move {
            let _held_until_all_actors_have_stopped = lock;
            system.run_until(signal, STOP_GRACE).await
        });
        Ok(WorkerDaemon { name, linked: is_linked, refused, stop, running: Some(running) })
    }

    /// The name of this node in the cluster.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the head has accepted this worker.
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

    /// Waits until the daemon has failed.
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

    /// Stops the daemon. Executors keep running, and with them the ranks.
    ///
    /// # Errors
    /// When an actor did not stop in order.
    pub async fn stop(self) -> Result<(), WorkerError> {
        // If the daemon has ended already, the receiver is gone.
        let _ = self.stop.send(());
        match self.running {
            Some(running) => Ok(running.await.map_err(|panic| WorkerError::Ended(panic.to_string()))??),
            None => Ok(()),
        }
    }
}

/// Why the daemon ended although nobody stopped it.
fn stopped_early(ended: Result<Result<(), ActorSystemError>, JoinError>) -> WorkerError {
    match ended {
        Ok(Err(error)) => error.into(),
        Ok(Ok(())) => WorkerError::Ended("all its actors stopped in order".to_owned()),
        Err(panic) => WorkerError::Ended(panic.to_string()),
    }
}

/// What the daemon needs before its actors start.
struct PreparedWorker {
    options: WorkerOptions,
    state: StateDirectory,
    lock: StateLock,
    machine: MachineInfo,
    rank_context: RankContext,
    archives: CheckpointArchives,
    left: Vec<LeftRank>,
}

/// Everything at the start that waits for files, devices and the system.
fn prepare(
    options: WorkerOptions,
    acknowledgements: Acknowledgements,
) -> Result<PreparedWorker, WorkerError> {
    let (state, lock) = StateDirectory::open(&options.state_dir)?;
    let left = recovery::scan(&state)?;
    let found = options.devices.find(options.nvml_library.as_deref(), options.mps);
    let do_all_answer = found.do_all_answer;
    let isolator = Isolator::establish(&state, options.accounts, found.gpu_files)?;
    let machine = MachineInfo::probe(&options, state.node(), found.devices, &isolator)?;
    let numbers =
        GpuNumbers::new(&machine.devices, do_all_answer, isolator.closes_other_gpus(), options.device_ids);
    let gpus = MpsDirectories::create(state.root(), &machine.devices, numbers, &search_path())?;
    let code = CodeCopies::open(&state)?;
    let rank_context = RankContext::new(&options, &state, isolator, gpus, code, acknowledgements);
    let archives = CheckpointArchives::open(&state);
    Ok(PreparedWorker { options, state, lock, machine, rank_context, archives, left })
}
