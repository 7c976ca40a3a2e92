//! The idle executors of this daemon.
//!
//! At least one is always idle, so that a rank need not wait until an executor has started. Executors whose
//! rank has ended stay idle for a moment, because many short ranks may follow each other. Idle executors exit
//! with the daemon.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cohabit_host::assignment::{Assigner, OPEN_FILES, assignment_channel};
use cohabit_host::files::{FileContext, FileError};
use cohabit_host::process::ProcessIdentity;
use cohabit_host::rank_directory::{OpenRankDirectory, RankDirectory};
use cohabit_net::initial_open_file_limit;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::executor_program::ExecutorProgram;

/// How long an executor stays idle before it is dismissed, unless it is the only idle one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts executors and keeps the idle ones; clones share the pool.
#[derive(Clone)]
pub(crate) struct ExecutorPool {
    program: ExecutorProgram,
    /// The worker's state directory: an argument that tells people whose executor a process is.
    state: PathBuf,
    idle: Arc<Mutex<IdleExecutors>>,
}

/// An executor of this daemon. When the handle is dropped, it exits at the end of its rank.
#[derive(Debug)]
pub(crate) struct ExecutorHandle {
    assigner: Assigner,
    /// Its parent, which this daemon started. `None` if it has died already.
    watchdog: Option<ProcessIdentity>,
    /// The directory of its current or last rank, where its own files are.
    directory: Option<OpenRankDirectory>,
}

#[derive(Default)]
struct IdleExecutors {
    /// The one that has been idle for the shortest time is the last.
    executors: Vec<(ExecutorHandle, Instant)>,
    /// Whether a task dismisses executors that have been idle for too long.
    has_dismisser: bool,
}

impl ExecutorPool {
    pub(crate) fn new(program: ExecutorProgram, state: PathBuf) -> ExecutorPool {
        ExecutorPool { program, state, idle: Arc::default() }
    }

    /// Assigns this rank, with this standard input, to an idle executor, or to a new one. Returns the
    /// connection to it. Blocks.
    ///
    /// # Errors
    /// When no executor can be started.
    pub(crate) fn assign(
        &self,
        directory: &RankDirectory,
        input: Option<&OwnedFd>,
    ) -> Result<(ExecutorHandle, UnixStream), FileError> {
        while let Some(mut executor) = self.take() {
            // Fails if the executor has died, or its files were removed with its last rank.
            if let Ok(connection) = executor.assign(directory, input) {
                return Ok((executor, connection));
            }
        }
        let mut executor = self.start()?;
        let connection =
            executor.assign(directory, input).at("assign a rank to an executor in", directory.path())?;
        Ok((executor, connection))
    }

    /// Starts an executor if none is idle, without waiting for it.
    pub(crate) fn replenish(&self) {
        if self.lock().executors.is_empty() {
            let executors = self.clone();
            spawn_blocking(move || match executors.start() {
                Ok(executor) => executors.keep(executor),
                Err(error) => tracing::warn!(%error, "no executor could be started ahead of the next rank"),
            });
        }
    }

    /// Takes back an executor whose rank has ended.
    pub(crate) fn keep(&self, executor: ExecutorHandle) {
        let mut idle = self.lock();
        idle.executors.push((executor, Instant::now()));
        if idle.executors.len() > 1 && !std::mem::replace(&mut idle.has_dismisser, true) {
            tokio::spawn(dismiss(Arc::clone(&self.idle)));
        }
    }

    fn take(&self) -> Option<ExecutorHandle> {
        self.lock().executors.pop().map(|(executor, _)| executor)
    }

    fn start(&self) -> Result<ExecutorHandle, FileError> {
        let (assigner, end) = assignment_channel().at("create a channel to", &self.program.location())?;
        let spawned = Command::from(self.program.command())
            .arg("executor")
            .arg(&self.state)
            .env_clear()
            .env(OPEN_FILES, initial_open_file_limit().to_string())
            .current_dir("/")
            .stdin(end)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = spawned.at("start the executor", &self.program.location())?;
        let watchdog = child.id().and_then(|pid| ProcessIdentity::of(pid.cast_signed()));
        tokio::spawn(reap(child));
        Ok(ExecutorHandle { assigner, watchdog, directory: None })
    }

    fn lock(&self) -> MutexGuard<'_, IdleExecutors> {
        lock(&self.idle)
    }
}

impl ExecutorHandle {
    /// Its watchdog, of which all processes of its ranks are descendants, if it lived when it was started.
    pub(crate) const fn watchdog(&self) -> Option<&ProcessIdentity> {
        self.watchdog.as_ref()
    }

    /// The executor's files are in place before it gets the rank, so that a later daemon finds them whenever
    /// this one ends.
    fn assign(&mut self, directory: &RankDirectory, input: Option<&OwnedFd>) -> io::Result<UnixStream> {
        let open = directory.open()?;
        let listener = match &self.directory {
            Some(last) => open.take_executor(last).map(|()| None)?,
            None => Some(open.listen()?),
        };
        let (connection, of_executor) = UnixStream::pair()?;
        self.assigner.assign(directory.path(), &of_executor, listener.as_ref(), input)?;
        self.directory = Some(open);
        Ok(connection)
    }
}

impl fmt::Debug for ExecutorPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorPool").field("program", &self.program).finish_non_exhaustive()
    }
}

fn lock(idle: &Mutex<IdleExecutors>) -> MutexGuard<'_, IdleExecutors> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Dismisses executors that have been idle for too long, until only one is left.
async fn dismiss(idle: Arc<Mutex<IdleExecutors>>) {
    loop {
        sleep(IDLE_TIMEOUT).await;
        let mut idle = lock(&idle);
        let executors = &mut idle.executors;
        let old = executors.iter().take_while(|(_, since)| since.elapsed() >= IDLE_TIMEOUT).count();
        executors.drain(..old.min(executors.len().saturating_sub(1)));
        if executors.len() <= 1 {
            idle.has_dismisser = false;
            return;
        }
    }
}

/// A child that has exited stays a zombie until it is waited for.
async fn reap(mut child: Child) {
    // How its rank ended is in the rank's directory.
    let _ = child.wait().await;
}
