//! Copies of files of jobs, for clients: each is read by a process with the rights of the job's account,
//! and what it writes is passed on in pieces when it is asked for.
//!
//! The process waits while nobody asks, because a pipe holds little. A copy outlives the link, not this
//! daemon.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::copy_task::{COPY_READER, CopyTask};
use cohabit_host::rank_directory::{RankDirectory, directories_in};
use cohabit_transfer::TransferTask;
use cohabit_types::{
    COPY_PIECE, CopyId, CopyPiece, CopyRead, FileCopyOrder, FollowMode, MOST_COPIES, Refusal, RefusalCode,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::checkpoints::CheckpointEntry;
use crate::executor_program::ExecutorProgram;
use crate::isolation::{AccountError, Isolator};
use crate::state_directory::StateDirectory;

/// The most copies of all users at once: each is a process, and holds a piece.
const MOST_OF_ALL: usize = 32;
/// How long a request waits for bytes.
const LONG_POLL: Duration = Duration::from_secs(10);
/// How long a client may be silent: longer than a restart of the head takes.
const LEASE: Duration = Duration::from_secs(60);
/// How long more is waited for where a piece is not full.
const GATHER: Duration = Duration::from_millis(20);
/// The most bytes of an answer to a request that waits: the head bounds only how many of the others there
/// are.
const MOST_AWAITED: usize = 64 << 10;

/// The copies; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Copies {
    state: StateDirectory,
    isolation: Isolator,
    program: ExecutorProgram,
    open: Arc<Mutex<HashMap<CopyId, OpenCopy>>>,
    /// One copy is begun after the other, so that no more are begun than there may be.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// One of them, with the task that ends it when its client is gone.
#[derive(Debug)]
struct OpenCopy {
    user: String,
    copy: Arc<RunningCopy>,
    reaper: AbortHandle,
}

#[derive(Debug)]
struct RunningCopy {
    output: tokio::sync::Mutex<ReaderOutput>,
    /// When its client asked last.
    asked: Mutex<Instant>,
    /// Ends the requests that wait.
    ended: Notify,
}

/// What the process writes.
#[derive(Debug)]
struct ReaderOutput {
    /// Killed when this is dropped.
    _reader: Child,
    stdout: ChildStdout,
    /// How many bytes the client has.
    from: u64,
    /// Those behind them that it may not have got.
    unconfirmed: Vec<u8>,
    is_over: bool,
}

impl Drop for OpenCopy {
    fn drop(&mut self) {
        self.reaper.abort();
        self.copy.ended.notify_waiters();
    }
}

impl Copies {
    pub(crate) fn new(state: StateDirectory, isolation: Isolator, program: ExecutorProgram) -> Copies {
        Copies { state, isolation, program, open: Arc::default(), turn: Arc::default() }
    }

    /// Begins to copy; does nothing the second time.
    pub(crate) async fn start(&self, order: FileCopyOrder) -> Result<(), Refusal> {
        order.request.check().map_err(|why| Refusal::new(RefusalCode::Invalid, why))?;
        let (id, user) = (order.request.id, order.user.clone());
        let (state, isolation) = (self.state.clone(), self.isolation.clone());
        // May ask a server for the account.
        let task = blocking(move || task(&state, &isolation, order)).await?;
        let _turn = self.turn.lock().await;
        if !self.has_room(id, &user)? {
            return Ok(());
        }
        let output = self.spawn(&task).await.map_err(|error| not_started(id, &error))?;
        let asked = Mutex::new(Instant::now());
        let copy = Arc::new(RunningCopy { output: output.into(), asked, ended: Notify::new() });
        let reaper = tokio::spawn(self.clone().reap(id, Arc::clone(&copy))).abort_handle();
        self.lock().insert(id, OpenCopy { user, copy, reaper });
        Ok(())
    }

    /// Bytes of a copy.
    pub(crate) async fn read(&self, read: CopyRead) -> Result<CopyPiece, Refusal> {
        let copy =
            self.lock().get(&read.id).map(|open| Arc::clone(&open.copy)).ok_or_else(|| gone(read.id))?;
        *copy.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        tokio::select! {
            piece = async { copy.output.lock().await.read(read).await } => piece,
            () = copy.ended.notified() => Err(gone(read.id)),
        }
    }

    /// Ends it, if it goes on.
    pub(crate) fn end(&self, id: CopyId) {
        self.lock().remove(&id);
    }

    /// Whether it is to be begun.
    fn has_room(&self, id: CopyId, user: &str) -> Result<bool, Refusal> {
        let open = self.lock();
        if open.contains_key(&id) {
            return Ok(false);
        }
        let of_user = open.values().filter(|other| other.user == user).count();
        if of_user >= MOST_COPIES || open.len() >= MOST_OF_ALL {
            let message = format!(
                "{of_user} copies of {user} from this node go on, and {} of all; there may be {MOST_COPIES} and \
                 {MOST_OF_ALL}: wait until one has ended",
                open.len()
            );
            return Err(Refusal::new(RefusalCode::Limit, message));
        }
        Ok(true)
    }

    async fn spawn(&self, task: &CopyTask) -> io::Result<ReaderOutput> {
        let mut command = Command::from(self.program.command());
        command.arg(COPY_READER).env_clear().current_dir("/").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut reader = command.spawn()?;
        let (input, output) = (reader.stdin.take(), reader.stdout.take());
        let (Some(mut input), Some(stdout)) = (input, output) else {
            return Err(io::Error::other("it has no pipes"));
        };
        input.write_all(&serde_json::to_vec(task)?).await?;
        Ok(ReaderOutput { _reader: reader, stdout, from: 0, unconfirmed: Vec::new(), is_over: false })
    }

    /// Ends the copy when its client has been silent for too long.
    async fn reap(self, id: CopyId, copy: Arc<RunningCopy>) {
        loop {
            let end = *copy.asked.lock().unwrap_or_else(PoisonError::into_inner) + LEASE;
            if end <= Instant::now() {
                return self.end(id);
            }
            sleep_until(end).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CopyId, OpenCopy>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReaderOutput {
    async fn read(&mut self, read: CopyRead) -> Result<CopyPiece, Refusal> {
        if read.from == self.from + self.unconfirmed.len() as u64 {
            (self.from, self.unconfirmed) = (read.from, Vec::new());
        } else if read.from != self.from {
            let message = format!("byte {} of a copy is not the next one, which is {}", read.from, self.from);
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        if self.unconfirmed.is_empty() && !self.is_over {
            let filled = match read.at_end {
                FollowMode::Return => self.fill(COPY_PIECE, GATHER).await,
                FollowMode::Wait => self.fill(MOST_AWAITED, LONG_POLL).await,
            };
            filled.map_err(|error| not_started(read.id, &error))?;
        }
        Ok(CopyPiece { bytes: self.unconfirmed.clone(), is_last: self.is_over })
    }

    /// Takes up to this many bytes; waits as long for the first of them, and a moment for more.
    async fn fill(&mut self, most: usize, mut patience: Duration) -> io::Result<()> {
        while self.unconfirmed.len() < most {
            let left = most - self.unconfirmed.len();
            self.unconfirmed.reserve(left);
            let mut limited = (&mut self.stdout).take(left as u64);
            let Ok(read) = timeout(patience, limited.read_buf(&mut self.unconfirmed)).await else { break };
            if read? == 0 {
                self.is_over = true;
                break;
            }
            patience = GATHER;
        }
        Ok(())
    }
}

/// What is to be read, and as whom. Blocks; touches no path that a user chose.
fn task(state: &StateDirectory, isolation: &Isolator, order: FileCopyOrder) -> Result<CopyTask, Refusal> {
    let account = isolation.account_named(&order.account, order.role);
    let account = account.map_err(|error| not_allowed(&error))?;
    let job = order.request.id.rank.attempt.job;
    let checkpoints = state.checkpoints();
    let entries = directories_in::<CheckpointEntry>(&checkpoints).into_iter();
    let entries = entries.filter(|entry| entry.job == job).map(|entry| entry.path(&checkpoints));
    let open = entries.chain([state.code_of(order.request.id.rank.attempt).files()]).collect();
    let transfer = TransferTask {
        base: base(state, &order),
        path: order.request.path.into(),
        depth: order.request.depth,
        limit: order.request.limit,
        private: vec![state.root().to_owned()],
        open,
    };
    Ok(CopyTask { reader: account.as_ref().map(|choice| (&choice.account).into()), transfer })
}

/// The working directory: as it was prepared while that is known, and then as the head says.
fn base(state: &StateDirectory, order: &FileCopyOrder) -> PathBuf {
    let rank = order.request.id.rank;
    if let Ok(Some(start)) = RankDirectory::for_rank(&state.ranks(), rank).start() {
        return start.workdir().to_owned();
    }
    let copy = state.code_of(rank.attempt).files();
    match &order.code_workdir {
        Some(workdir) if copy.is_dir() => copy.join(workdir),
        Some(_) | None => order.workdir.clone().into(),
    }
}

fn not_allowed(error: &AccountError) -> Refusal {
    let message = format!("files of the job cannot be read with the rights of its account: {error}");
    Refusal::new(RefusalCode::NotAllowed, message)
}

fn not_started(id: CopyId, error: &io::Error) -> Refusal {
    let message = format!("the worker of {} cannot read files: {error}", id.rank);
    Refusal::new(RefusalCode::StorageFailed, message)
}

fn gone(id: CopyId) -> Refusal {
    let message = format!(
        "the copy of files of {} is gone: its worker was restarted, or its client was silent",
        id.rank
    );
    Refusal::new(RefusalCode::NotFound, message)
}
