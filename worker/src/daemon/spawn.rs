//! Starts executors, and connects to those that run.
//!
//! The socket is bound and connected to before the executor, which inherits it, is started: so connecting
//! comes neither too early nor, after a very short rank, too late. Sockets are named through an open folder,
//! for their own path may be longer than a socket's name can be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cohabit_worker_core::RankStart;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;

use super::environment::Surroundings;
use super::rendezvous::is_free;
use crate::files::{At, FileError};
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
    #[error("this worker holds another rank of that name already: {0}")]
    Held(PathBuf),
    #[error("the work of starting it was cut short: {0}")]
    CutShort(#[from] tokio::task::JoinError),
    #[error("another program listens at port {0}, where its ranks were to meet")]
    PortTaken(u16),
    #[error("the connection to its executor cannot be used: {0}")]
    Connection(#[from] io::Error),
}

/// Starts the executor of this rank and connects to it.
pub(crate) async fn spawn(rank: RankStart, surroundings: Surroundings) -> Result<Connection, SpawnError> {
    let (child, stream) = spawn_blocking(move || start(rank, &surroundings)).await??;
    tokio::spawn(reap(child));
    connection(stream).map_err(SpawnError::from)
}

/// Everything that waits for the disk or for the system.
fn start(rank: RankStart, surroundings: &Surroundings) -> Result<(Child, UnixStream), SpawnError> {
    let folder = surroundings.folder_of(&rank);
    make_way(&folder)?;
    let port = rank.rendezvous_port;
    folder.prepare(&surroundings.prepare(rank)?)?;
    if let Some(taken) = port.filter(|port| !is_free(*port)) {
        return Err(SpawnError::PortTaken(taken));
    }
    let (listener, stream) = listen(folder.path()).at("listen in", folder.path())?;
    let own_words = append_to(&folder.executor_log())?;
    let program = &surroundings.executor_program;
    let spawned = Command::new(program)
        .arg("executor")
        .arg(folder.path())
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::null())
        .stderr(own_words)
        .spawn();
    Ok((spawned.at("start the executor", program)?, stream))
}

/// A folder that is there already may be of a job of that name in an earlier life of the cluster. It goes,
/// unless somebody still has to hear of that rank.
fn make_way(folder: &RankFolder) -> Result<(), SpawnError> {
    match folder.path().try_exists() {
        Ok(true) if folder.is_acknowledged() => {
            std::fs::remove_dir_all(folder.path()).at("clear", folder.path()).map_err(SpawnError::from)
        }
        Ok(true) => Err(SpawnError::Held(folder.path().to_owned())),
        Ok(false) => Ok(()),
        Err(error) => Err(error).at("look at", folder.path()).map_err(SpawnError::from),
    }
}

fn append_to(path: &Path) -> Result<File, FileError> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).at("create", path)
}

/// The executor's end, and the first connection to it.
fn listen(folder: &Path) -> io::Result<(UnixListener, UnixStream)> {
    let open = File::open(folder)?;
    let listener = UnixListener::bind(socket_in(&open))?;
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

/// A dead child stays in the table of processes until somebody asks for it.
async fn reap(mut child: Child) {
    // How the rank ended is in its folder.
    let _ = child.wait().await;
}
