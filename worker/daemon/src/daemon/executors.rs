//! The executors that this daemon started: those that hold a rank, and those that wait for their next one.
//!
//! One always waits, so that a rank need not wait for a process of our own to start. Those that ended a rank
//! wait a moment for another, for short ranks come in swarms. Without a daemon those that wait go.

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cohabit_net::initial_open_file_limit;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::assignment::{Assigner, line};
use crate::executor::OPEN_FILES;
use crate::files::{FileContext, FileError};
use crate::rank_folder::{OpenRankDirectory, RankDirectory};

/// How long an executor waits for its next rank, if it is not the only one that waits.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts executors and remembers those that have nothing to do; clones are the same.
#[derive(Clone)]
pub(crate) struct ExecutorPool {
    program: PathBuf,
    /// The worker's state folder: says to people whose executors they are.
    state: PathBuf,
    waiting: Arc<Mutex<IdleExecutors>>,
}

/// An executor of this daemon. Dropped, it goes when its rank has ended.
#[derive(Debug)]
pub(crate) struct ExecutorHandle {
    line: Assigner,
    /// Of the rank that it holds, or held last: its own files are there.
    folder: Option<OpenRankDirectory>,
}

#[derive(Default)]
struct IdleExecutors {
    /// The one that waits for the shortest time is the last.
    executors: Vec<(ExecutorHandle, Instant)>,
    /// Whether somebody sees to it that they do not wait for ever.
    watched: bool,
}

impl ExecutorPool {
    pub(crate) fn new(program: PathBuf, state: PathBuf) -> ExecutorPool {
        ExecutorPool { program, state, waiting: Arc::default() }
    }

    /// Gives this rank to an executor, to a new one if none waits. With it comes a connection to it.
    ///
    /// # Errors
    /// When none can be started.
    pub(crate) fn hold(&self, folder: &RankDirectory) -> Result<(ExecutorHandle, UnixStream), FileError> {
        while let Some(mut executor) = self.take() {
            // One that died meanwhile, or whose files went with its last rank, takes nothing.
            if let Ok(connection) = executor.hold(folder) {
                return Ok((executor, connection));
            }
        }
        let mut executor = self.start()?;
        let connection = executor.hold(folder).at("give a rank to an executor in", folder.path())?;
        Ok((executor, connection))
    }

    /// Sees to it that one waits, sooner or later.
    pub(crate) fn replenish(&self) {
        if self.lock().executors.is_empty() {
            let executors = self.clone();
            spawn_blocking(move || match executors.start() {
                Ok(executor) => executors.keep(executor),
                Err(error) => tracing::warn!(%error, "no executor waits for the next rank"),
            });
        }
    }

    /// Its rank has ended.
    pub(crate) fn keep(&self, executor: ExecutorHandle) {
        let mut waiting = self.lock();
        waiting.executors.push((executor, Instant::now()));
        if waiting.executors.len() > 1 && !std::mem::replace(&mut waiting.watched, true) {
            tokio::spawn(dismiss(Arc::clone(&self.waiting)));
        }
    }

    fn take(&self) -> Option<ExecutorHandle> {
        self.lock().executors.pop().map(|(executor, _)| executor)
    }

    fn start(&self) -> Result<ExecutorHandle, FileError> {
        let (assigner, end) = line().at("make a line to", &self.program)?;
        let spawned = Command::new(&self.program)
            .arg("executor")
            .arg(&self.state)
            .env_clear()
            .env(OPEN_FILES, initial_open_file_limit().to_string())
            .current_dir("/")
            .stdin(end)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        tokio::spawn(reap(spawned.at("start the executor", &self.program)?));
        Ok(ExecutorHandle { line: assigner, folder: None })
    }

    fn lock(&self) -> MutexGuard<'_, IdleExecutors> {
        lock(&self.waiting)
    }
}

impl ExecutorHandle {
    /// Its files are in place before it hears of the rank: a later daemon finds them, whenever this one ends.
    fn hold(&mut self, folder: &RankDirectory) -> io::Result<UnixStream> {
        let open = folder.open()?;
        let listener = match &self.folder {
            Some(last) => open.take_executor(last).map(|()| None)?,
            None => Some(open.listen()?),
        };
        let (connection, of_executor) = UnixStream::pair()?;
        self.line.assign(folder.path(), &of_executor, listener.as_ref())?;
        self.folder = Some(open);
        Ok(connection)
    }
}

impl fmt::Debug for ExecutorPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executors").field("program", &self.program).finish_non_exhaustive()
    }
}

fn lock(waiting: &Mutex<IdleExecutors>) -> MutexGuard<'_, IdleExecutors> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets those go that have waited for too long, until only one is left.
async fn dismiss(waiting: Arc<Mutex<IdleExecutors>>) {
    loop {
        sleep(IDLE_TIMEOUT).await;
        let mut waiting = lock(&waiting);
        let executors = &mut waiting.executors;
        let old = executors.iter().take_while(|(_, since)| since.elapsed() >= IDLE_TIMEOUT).count();
        executors.drain(..old.min(executors.len().saturating_sub(1)));
        if executors.len() <= 1 {
            waiting.watched = false;
            return;
        }
    }
}

/// A dead child stays in the table of processes until somebody asks for it.
async fn reap(mut child: Child) {
    // How its rank ended is in the rank's folder.
    let _ = child.wait().await;
}
