//! NVIDIA's Multi-Process Service: one control daemon for each GPU, so that a fault stays on it.
//!
//! ```text
//! home        where a GPU's daemon has its sockets, logs and lock
//! tools       NVIDIA's programs, and whether a GPU can be shared with them
//! control     one command at a time to a daemon, across all processes of this machine
//! daemon      start and prove, adopt, look after, recover, stop
//! server_log  what the server's log tells of faults
//! client      what a client finds in its environment, and how it is removed
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_proto::{Bytes, DeviceId, DeviceSharing, GpuFacts};

/// Trouble with MPS, in words for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MpsError(pub String);

/// Where the daemon of one GPU has its sockets, logs and lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(pub(crate) PathBuf);

/// NVIDIA's control program and server.
#[derive(Debug, Clone)]
pub struct Tools {}

/// A control daemon that runs.
#[derive(Debug)]
pub struct Daemon {}

/// How a daemon's server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Serves its clients.
    Active,
    /// Is about to.
    Initializing,
    /// Waits for all its clients to go.
    Fault,
    /// There is none, or no daemon.
    Gone,
    /// The daemon did not answer in time.
    Unknown,
}

/// A fault that the server's log tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The processes that it names as culprits; none for faults other than of memory.
    pub culprits: Vec<i32>,
    /// Its words.
    pub detail: String,
}

impl Home {
    /// The place for this GPU's daemon, made and private: in the state folder, or where that path is too long for a
    /// socket, in a private folder of the temporary one. The same for the same arguments.
    ///
    /// # Errors
    /// When neither can be made private.
    pub fn of(state: &Path, gpu: &DeviceId) -> Result<Home, MpsError> {
        unimplemented!("{state:?} {gpu}")
    }

    /// `CUDA_MPS_PIPE_DIRECTORY`.
    #[must_use]
    pub fn pipe(&self) -> PathBuf {
        self.0.join("p")
    }

    /// `CUDA_MPS_LOG_DIRECTORY`.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.0.join("l")
    }

    /// An empty folder for those who must not meet any MPS daemon.
    #[must_use]
    pub fn nowhere(&self) -> PathBuf {
        self.0.join("n")
    }
}

impl Tools {
    /// The programs in this search path, in the form of `PATH`.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub fn find(search_path: &str) -> Result<Tools, MpsError> {
        unimplemented!("{search_path}")
    }
}

/// Whether a GPU can be shared under MPS on this machine, as far as can be said without trying.
#[must_use]
pub fn support(gpu: &GpuFacts, tools: Result<&Tools, &MpsError>) -> DeviceSharing {
    unimplemented!("{gpu:?} {tools:?}")
}

impl Daemon {
    /// Starts the daemon of this GPU and its server, and waits until the server is active. A daemon of an earlier time
    /// that is left in this home is stopped first.
    ///
    /// # Errors
    /// Why it does not work; nothing of it is left then.
    pub fn start(tools: &Tools, home: &Home, gpu: &DeviceId) -> Result<Daemon, MpsError> {
        unimplemented!("{tools:?} {home:?} {gpu}")
    }

    /// The daemon that runs in this home, if it is beyond doubt the one that was started there.
    #[must_use]
    pub fn adopt(tools: &Tools, home: &Home, gpu: &DeviceId) -> Option<Daemon> {
        unimplemented!("{tools:?} {home:?} {gpu}")
    }

    /// How its server is.
    #[must_use]
    pub fn state(&self) -> ServerState {
        unimplemented!()
    }

    /// The processes that are its clients.
    ///
    /// # Errors
    /// When the daemon did not say: that is not the same as none.
    pub fn clients(&self) -> Result<Vec<i32>, MpsError> {
        unimplemented!()
    }

    /// Faults that its log tells of since the last call.
    pub fn faults(&mut self) -> Vec<Fault> {
        unimplemented!()
    }

    /// After a fault, when all clients are gone: waits until the server is active, and starts everything anew if it
    /// is not in time.
    ///
    /// # Errors
    /// Why it does not work.
    pub fn recover(&mut self, patience: Duration) -> Result<(), MpsError> {
        unimplemented!("{patience:?}")
    }

    /// Stops it: politely, then by force.
    ///
    /// # Errors
    /// When something of it is left.
    pub fn quit(self, patience: Duration) -> Result<(), MpsError> {
        unimplemented!("{patience:?}")
    }
}

/// What a process must find in its environment to be a client within these limits: pipe and log directory, the GPU by
/// its UUID, the memory of the process, and where it is capped, its percentage of the multiprocessors.
#[must_use]
pub fn client_environment(
    home: &Home,
    gpu: &DeviceId,
    memory: Bytes,
    percentage: Option<u32>,
) -> BTreeMap<String, String> {
    unimplemented!("{home:?} {gpu} {memory} {percentage:?}")
}

/// What keeps a process from meeting any MPS daemon.
#[must_use]
pub fn opt_out(home: &Home) -> BTreeMap<String, String> {
    unimplemented!("{home:?}")
}

/// Removes those of these processes that are clients of the daemon in this pipe directory; gives up after this time.
/// Says which were removed.
///
/// # Errors
/// When the server did not confirm it.
pub fn terminate_clients(pipe: &Path, processes: &[i32], patience: Duration) -> Result<Vec<i32>, MpsError> {
    unimplemented!("{pipe:?} {processes:?} {patience:?}")
}
