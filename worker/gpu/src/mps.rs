//! NVIDIA's Multi-Process Service: one control daemon for each GPU, so that a fault stays on it.
//!
//! ```text
//! home        where a GPU's daemon has its sockets, logs and lock
//! tools       NVIDIA's programs, and whether a GPU can be shared with them
//! control     one command at a time to a daemon, across all processes of this machine
//! processes   which processes are daemons and servers of MPS, and of which home
//! start       start a daemon, and prove that its server serves
//! stop        stop a daemon, politely, then by force
//! daemon      start, adopt, look after, recover, stop
//! server_log  what the server's log tells of faults
//! client      what a client finds in its environment, and how it is removed
//! patience    waiting for other processes, up to a deadline
//! ```

mod client;
mod control;
mod daemon;
mod home;
mod patience;
mod processes;
mod server_log;
mod start;
mod stop;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use client::{client_environment, environment_without_mps, terminate_clients};
#[cfg(feature = "fuzzing")]
pub(crate) use server_log::fuzzing;
pub use tools::check_sharing;

/// Trouble with MPS, in words for people.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct MpsError(pub String);

/// Where the daemon of one GPU has its sockets, logs and lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MpsDirectory(PathBuf);

/// NVIDIA's control program and server.
#[derive(Debug, Clone)]
pub struct MpsPrograms {
    control: PathBuf,
    /// All that the programs get of our own environment; its search path leads to the server.
    environment: BTreeMap<String, String>,
}

/// A control daemon that runs.
#[derive(Debug)]
pub struct MpsDaemon {
    control: control::Control,
    record: home::DaemonRecord,
    log: server_log::ServerLog,
}

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

/// All that is needed to remove clients from a GPU's MPS server, by a process that knows nothing else of it:
/// it can be written down, and needs nothing of that process' own environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientRemoval(control::Control);
