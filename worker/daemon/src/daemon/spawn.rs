//! Gives ranks to executors, and connects to those that hold one.
//!
//! The connection comes into being before the executor gets the rank: so there is one however short the rank
//! is. The socket in the rank's folder is for later daemons.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use cohabit_worker_core::RankStart;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::spawn_blocking;

use super::environment::RankContext;
use super::executors::ExecutorHandle;
use super::rendezvous::is_free;
use crate::files::{FileContext, FileError, remove_directory};
use crate::isolation::AccountError;
use crate::rank_folder::RankDirectory;

/// What an executor says, line by line.
pub(crate) type ExecutorLines = Lines<BufReader<OwnedReadHalf>>;

/// A connection to an executor.
pub(crate) struct ExecutorConnection {
    pub(crate) words: ExecutorLines,
    pub(crate) commands: OwnedWriteHalf,
}

/// Why there is no executor.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Account(AccountError),
    #[error("this worker holds another rank of that name already: {0}")]
    Held(PathBuf),
    #[error("the work of starting it was cut short: {0}")]
    CutShort(#[from] tokio::task::JoinError),
    #[error("another program listens at port {0}, where its ranks were to meet")]
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
            | AccountError::LookUp(..)
            | AccountError::NoneLeft(_)
            | AccountError::CheckpointsOfAnother { .. }) => SpawnError::Account(error),
        }
    }
}

/// A rank that an executor has.
pub(crate) struct Spawned {
    pub(crate) executor: ExecutorHandle,
    pub(crate) connection: ExecutorConnection,
    /// As whom the rank runs, where its user has no account here.
    pub(crate) private_uid: Option<u32>,
}

/// Gives this rank to an executor and connects to it.
pub(crate) async fn spawn(rank: RankStart, rank_context: RankContext) -> Result<Spawned, SpawnError> {
    let (executor, stream, private_uid) = spawn_blocking(move || start(rank, &rank_context)).await??;
    Ok(Spawned { executor, connection: connection(stream)?, private_uid })
}

/// Everything that waits for the disk or for the system.
fn start(
    rank: RankStart,
    rank_context: &RankContext,
) -> Result<(ExecutorHandle, UnixStream, Option<u32>), SpawnError> {
    let folder = rank_context.folder_of(&rank);
    clear_stale_directory(&folder)?;
    let port = rank.rendezvous_port;
    let start = rank_context.prepare(rank)?;
    folder.prepare(&start)?;
    if let Some(taken) = port.filter(|port| !is_free(*port)) {
        return Err(SpawnError::PortTaken(taken));
    }
    let (executor, stream) = rank_context.executors.hold(&folder)?;
    Ok((executor, stream, start.rank.private_uid))
}

/// A folder that is there already may be of a job of that name in an earlier life of the cluster. It goes,
/// unless somebody still has to hear of that rank.
fn clear_stale_directory(folder: &RankDirectory) -> Result<(), SpawnError> {
    match folder.path().try_exists() {
        Ok(true) if folder.is_acknowledged() => {
            remove_directory(folder.path()).at("clear", folder.path()).map_err(SpawnError::from)
        }
        Ok(true) => Err(SpawnError::Held(folder.path().to_owned())),
        Ok(false) => Ok(()),
        Err(error) => Err(error).at("look at", folder.path()).map_err(SpawnError::from),
    }
}

/// Connects to the executor of this folder; refused where there is none any more.
pub(crate) fn connect(folder: &RankDirectory) -> io::Result<ExecutorConnection> {
    connection(folder.open()?.connect()?)
}

fn connection(stream: UnixStream) -> io::Result<ExecutorConnection> {
    stream.set_nonblocking(true)?;
    let (reading, commands) = tokio::net::UnixStream::from_std(stream)?.into_split();
    Ok(ExecutorConnection { words: BufReader::new(reading).lines(), commands })
}
