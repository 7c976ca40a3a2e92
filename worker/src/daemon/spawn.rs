//! Gives ranks to executors, and connects to those that hold one.
//!
//! The socket is bound and connected to before an executor gets it: so connecting comes neither too early
//! nor, after a very short rank, too late. Sockets are named through an open folder, for their own path may
//! be longer than a socket's name can be.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use cohabit_worker_core::RankStart;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::spawn_blocking;

use super::environment::Surroundings;
use super::executors::Executor;
use super::rendezvous::is_free;
use crate::files::{At, FileError, remove_folder};
use crate::isolation::AccountError;
use crate::rank_folder::RankFolder;

/// What an executor says, line by line.
pub(crate) type Words = Lines<BufReader<OwnedReadHalf>>;

/// A connection to an executor.
pub(crate) struct Connection {
    pub(crate) words: Words,
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
    Connection(#[from] io::Error),
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
    pub(crate) executor: Executor,
    pub(crate) connection: Connection,
    /// As whom the rank runs, where its user has no account here.
    pub(crate) private_uid: Option<u32>,
}

/// Gives this rank to an executor and connects to it.
pub(crate) async fn spawn(rank: RankStart, surroundings: Surroundings) -> Result<Spawned, SpawnError> {
    let (executor, stream, private_uid) = spawn_blocking(move || start(rank, &surroundings)).await??;
    Ok(Spawned { executor, connection: connection(stream)?, private_uid })
}

/// Everything that waits for the disk or for the system.
fn start(
    rank: RankStart,
    surroundings: &Surroundings,
) -> Result<(Executor, UnixStream, Option<u32>), SpawnError> {
    let folder = surroundings.folder_of(&rank);
    make_way(&folder)?;
    let port = rank.rendezvous_port;
    let start = surroundings.prepare(rank)?;
    folder.prepare(&start)?;
    if let Some(taken) = port.filter(|port| !is_free(*port)) {
        return Err(SpawnError::PortTaken(taken));
    }
    let (listener, stream) = listen(folder.path()).at("listen in", folder.path())?;
    Ok((surroundings.executors.hold(folder.path(), &listener)?, stream, start.rank.private_uid))
}

/// A folder that is there already may be of a job of that name in an earlier life of the cluster. It goes,
/// unless somebody still has to hear of that rank.
fn make_way(folder: &RankFolder) -> Result<(), SpawnError> {
    match folder.path().try_exists() {
        Ok(true) if folder.is_acknowledged() => {
            remove_folder(folder.path()).at("clear", folder.path()).map_err(SpawnError::from)
        }
        Ok(true) => Err(SpawnError::Held(folder.path().to_owned())),
        Ok(false) => Ok(()),
        Err(error) => Err(error).at("look at", folder.path()).map_err(SpawnError::from),
    }
}

/// The executor's end, and the first connection to it.
fn listen(folder: &Path) -> io::Result<(UnixListener, UnixStream)> {
    let open = File::open(folder)?;
    let listener = UnixListener::bind(socket_in(&open))?;
    // Whoever may write to it commands the executor.
    std::fs::set_permissions(socket_in(&open), Permissions::from_mode(0o600))?;
    Ok((listener, UnixStream::connect(socket_in(&open))?))
}

/// Connects to the executor of this folder; refused where there is none any more.
pub(crate) fn connect(folder: &RankFolder) -> io::Result<Connection> {
    let open = File::open(folder.path())?;
    connection(UnixStream::connect(socket_in(&open))?)
}

fn connection(stream: UnixStream) -> io::Result<Connection> {
    stream.set_nonblocking(true)?;
    let (reading, commands) = tokio::net::UnixStream::from_std(stream)?.into_split();
    Ok(Connection { words: BufReader::new(reading).lines(), commands })
}

fn socket_in(folder: &File) -> PathBuf {
    format!("/proc/self/fd/{}/socket", folder.as_raw_fd()).into()
}
