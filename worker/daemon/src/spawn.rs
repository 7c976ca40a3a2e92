//! Assigns ranks to executors, and connects to executors that run one.
//!
//! The connection exists before the executor gets the rank, however short the rank is. The socket in the
//! rank's directory is for later daemons.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use cohabit_actor::blocking;
use cohabit_host::files::{FileContext, FileError, is_of_machine, remove_directory};
use cohabit_host::rank_directory::RankDirectory;
use cohabit_host::spare_directory::FileOwner;
use cohabit_types::{ApplicationAccess, StartFailure, Time};
use cohabit_worker_core::RankStart;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::executor_pool::ExecutorHandle;
use crate::isolation::AccountError;
use crate::ports::is_free;
use crate::rank_context::RankContext;

/// The events of an executor, line by line.
pub(crate) type ExecutorLines = Lines<BufReader<OwnedReadHalf>>;

/// A connection to an executor.
pub(crate) struct ExecutorConnection {
    pub(crate) events: ExecutorLines,
    pub(crate) commands: OwnedWriteHalf,
}

/// Why no executor got the rank.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Account(AccountError),
    #[error("this worker already holds a rank with this id: {0}")]
    Held(PathBuf),
    #[error(
        "no executor can be started: {0} (it needs a program file that the worker may execute, and room for a process)"
    )]
    Executor(FileError),
    #[error("another program listens on port {0}, which its ranks need for their rendezvous")]
    PortTaken(u16),
    #[error("the connection to its executor cannot be used: {0}")]
    ExecutorConnection(#[from] io::Error),
}

impl From<AccountError> for SpawnError {
    fn from(error: AccountError) -> SpawnError {
        match error {
            AccountError::File(error) => SpawnError::File(error),
            error @ (AccountError::NotAdmin(_)
            | AccountError::NoRootJobs(_)
            | AccountError::OfSystem { .. }
            | AccountError::Other { .. }
            | AccountError::LookUp(..)
            | AccountError::NoneLeft(_)
            | AccountError::CheckpointsOfAnother { .. }) => SpawnError::Account(error),
        }
    }
}

impl SpawnError {
    /// What the head hears of it.
    pub(crate) fn failure(&self) -> StartFailure {
        match self {
            SpawnError::PortTaken(port) => StartFailure::PortTaken(*port),
            SpawnError::Executor(_) => StartFailure::NodeProblem(self.to_string()),
            SpawnError::Account(why) => why.failure(),
            SpawnError::File(error) if error.is_of_machine() => StartFailure::NodeProblem(self.to_string()),
            SpawnError::ExecutorConnection(cause) if is_of_machine(cause) => {
                StartFailure::NodeProblem(self.to_string())
            }
            SpawnError::Held(_) | SpawnError::File(_) | SpawnError::ExecutorConnection(_) => {
                StartFailure::Other(self.to_string())
            }
        }
    }
}

/// A rank that was assigned to an executor.
pub(crate) struct SpawnedRank {
    pub(crate) executor: ExecutorHandle,
    pub(crate) connection: ExecutorConnection,
    /// The user id of the rank, if its user has no account on this host.
    pub(crate) private_uid: Option<u32>,
}

/// Assigns this rank to an executor. The head could be reached at this time.
///
/// # Errors
/// Why it cannot be started; nothing of it runs then.
pub(crate) async fn spawn(
    rank: RankStart,
    leased_at: Time,
    rank_context: RankContext,
) -> Result<SpawnedRank, SpawnError> {
    let (retried, context) = (rank.clone(), rank_context.clone());
    let started = match blocking(move || start(rank, leased_at, &rank_context)).await {
        // The acknowledgement of an earlier rank with this id may be queued.
        Err(SpawnError::Held(_)) => {
            context.acknowledgements.drained().await;
            blocking(move || start(retried, leased_at, &context)).await
        }
        started => started,
    };
    let (executor, stream, private_uid) = started?;
    Ok(SpawnedRank { executor, connection: connection(stream)?, private_uid })
}

/// Everything that waits for the disk or for the system.
fn start(
    rank: RankStart,
    leased_at: Time,
    rank_context: &RankContext,
) -> Result<(ExecutorHandle, UnixStream, Option<u32>), SpawnError> {
    let directory = rank_context.directory_of(&rank);
    clear_stale_directory(&directory)?;
    let account = rank_context.isolation.account(&rank);
    let owner = account.as_ref().ok().map(|chosen| FileOwner::of(chosen.as_ref().map(|it| &it.account)));
    rank_context.state.create_rank_directory(rank.rank, owner)?;
    let port = rank.rendezvous_port;
    let access = rank_context.application_access(&rank);
    let input = access.map(|access| access_file(&access)).transpose()?;
    let start = rank_context.prepare(rank, account?, leased_at)?;
    directory.prepare(&start)?;
    if let Some(taken) = port.filter(|port| !is_free(*port)) {
        return Err(SpawnError::PortTaken(taken));
    }
    let (executor, stream) =
        rank_context.executors.assign(&directory, input.as_ref()).map_err(SpawnError::Executor)?;
    Ok((executor, stream, start.rank.private_uid))
}

/// A file in memory that nobody can change, with what a rank of an application finds on its standard input:
/// the secrets in it are on no disk, in no argument and in no environment.
fn access_file(access: &ApplicationAccess) -> io::Result<OwnedFd> {
    let text = serde_json::to_vec(access)?;
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create("application", flags)?);
    file.write_all(&text)?;
    file.rewind()?;
    let seals =
        [SealFlag::F_SEAL_WRITE, SealFlag::F_SEAL_GROW, SealFlag::F_SEAL_SHRINK, SealFlag::F_SEAL_SEAL];
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::from_iter(seals)))?;
    Ok(file.into())
}

/// An existing directory may be of a rank with the same id before the head was reset. It is removed, unless
/// that rank still has to be reported.
fn clear_stale_directory(directory: &RankDirectory) -> Result<(), SpawnError> {
    match directory.path().try_exists() {
        Ok(true) if directory.is_acknowledged() => {
            match remove_directory(directory.path()) {
                // It was removed meanwhile, because the rank had ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.at("clear", directory.path()).map_err(SpawnError::from),
            }
        }
        Ok(true) => Err(SpawnError::Held(directory.path().to_owned())),
        Ok(false) => Ok(()),
        Err(error) => Err(error).at("inspect", directory.path()).map_err(SpawnError::from),
    }
}

/// Connects to the executor of this directory; refused where it is gone.
pub(crate) async fn connect(directory: &RankDirectory) -> io::Result<ExecutorConnection> {
    let directory = directory.clone();
    connection(blocking(move || directory.open()?.connect()).await?)
}

fn connection(stream: UnixStream) -> io::Result<ExecutorConnection> {
    stream.set_nonblocking(true)?;
    let (reading, commands) = tokio::net::UnixStream::from_std(stream)?.into_split();
    Ok(ExecutorConnection { events: BufReader::new(reading).lines(), commands })
}
