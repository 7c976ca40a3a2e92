//! The messages between the parts of the fake MPS: the control daemon, its server and their clients.
//!
//! A caller connects to the daemon's control socket and sends what it is: a [`Caller`]. The daemon tells a
//! client its server. Server and client exchange lines of JSON over a connection that lasts as long as the
//! client.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The socket of the control daemon.
#[must_use]
pub fn control_socket(pipe: &Path) -> PathBuf {
    pipe.join("control")
}

/// The socket of the server.
#[must_use]
pub fn server_socket(pipe: &Path) -> PathBuf {
    pipe.join("fake-server")
}

/// What connects to the control daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The control program, for a session.
    Session,
    /// A program that uses CUDA.
    Client(i32),
}

/// The answer of the control daemon to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlReply {
    /// To a session: send commands.
    Commands,
    /// To a session while another one waits for its next command: exit with success and without output.
    Empty,
    /// To a session while another one runs a command: fail with a message.
    Unsent,
    /// The same, but fail without a message.
    Silent,
    /// To a client: the process id of the server.
    Server(i32),
    /// To a client: there is no server; a CUDA error.
    NoServer(i32),
}

/// A request to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToServer {
    /// From a client: connect, until the connection is closed.
    Enter(i32),
    /// From a client: it caused this fault.
    Fault(Fault),
    /// From a client: it disconnects.
    Leave,
    /// By the daemon: everything else, each on a connection of its own.
    State,
    /// List the clients.
    Clients,
    /// Remove this client.
    Terminate(i32),
    /// Set the limits of later clients.
    Limit(Limits),
    /// Query the limits of later clients.
    Limits,
    /// Exit when the last client is gone.
    Shutdown,
}

/// An answer of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromServer {
    /// To a client: connected, with these limits, on this GPU.
    Entered(Limits, String),
    /// To a client: not connected, or not any more; a CUDA error.
    Failed(i32),
    /// The state of the server.
    State(ServerState),
    /// Its clients.
    Clients(Vec<i32>),
    /// The limits of later clients.
    Limits(Limits),
    /// An order was carried out.
    Done,
}

/// A fault that a program can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// An invalid memory access: the log names the culprit.
    Memory,
    /// Another fault: the log names no culprit.
    Other,
}

/// Limits of a server's clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Percent of the multiprocessors.
    pub percentage: f64,
    /// Bytes of the GPU's memory.
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { percentage: 100.0, memory: None }
    }
}

impl Limits {
    /// The limits that the environment sets for a client, or for all clients of a server, on this single GPU.
    /// Invalid values are no limit.
    #[must_use]
    pub fn of_environment(gpu: &str) -> Limits {
        let read = |name: &str| std::env::var(name).ok();
        let percentage = read("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE").and_then(|text| text.parse().ok());
        let memory = read("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT").unwrap_or_default();
        let entries = memory.split(',').filter_map(|entry| entry.trim().split_once('='));
        let mut mine = entries.filter(|(device, _)| *device == "0" || *device == gpu);
        Limits {
            percentage: percentage.filter(|it| *it > 0.0 && *it <= 100.0).unwrap_or(100.0),
            memory: mine.find_map(|(_, limit)| limit_bytes(limit)),
        }
    }

    /// The stricter limits of both.
    #[must_use]
    pub fn within(self, other: Limits) -> Limits {
        let memory = [self.memory, other.memory].into_iter().flatten().min();
        Limits { percentage: self.percentage.min(other.percentage), memory }
    }
}

/// How the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ServerState {
    /// It creates its contexts.
    Initializing,
    /// It serves clients.
    Active,
    /// It waits until all clients are gone.
    Fault,
}

/// The bytes of a limit in a client's environment: an integer with `G` or `M`. Anything else is no limit,
/// because CUDA does not document other forms.
#[must_use]
pub fn limit_bytes(text: &str) -> Option<u64> {
    let number = |unit: char| text.strip_suffix(unit)?.parse::<u64>().ok();
    number('G').map(|it| it << 30).or_else(|| number('M').map(|it| it << 20))
}

/// The text of a limit, in whole gigabytes if possible.
#[must_use]
pub fn limit_text(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 30) { format!("{}G", bytes >> 30) } else { format!("{}M", bytes >> 20) }
}

/// One end of a connection between server and client.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<UnixStream>,
}

impl Lines {
    /// Uses this connection.
    #[must_use]
    pub fn over(stream: UnixStream) -> Lines {
        Lines { reader: BufReader::new(stream) }
    }

    /// Connects to the server of this pipe directory.
    ///
    /// # Errors
    /// When there is no server.
    pub fn to_server(pipe: &Path) -> io::Result<Lines> {
        UnixStream::connect(server_socket(pipe)).map(Lines::over)
    }

    /// Sends one line.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn send(&self, words: &impl Serialize) -> io::Result<()> {
        let line = format!("{}\n", serde_json::to_string(words)?);
        self.reader.get_ref().write_all(line.as_bytes())
    }

    /// The next line; `None` when the other end is gone.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// A second handle of the connection, to send while the first one receives.
    ///
    /// # Errors
    /// When no file descriptor is left.
    pub fn second(&self) -> io::Result<Lines> {
        self.reader.get_ref().try_clone().map(Lines::over)
    }

    /// Ends the connection for all handles.
    pub fn hang_up(&self) {
        // The other end may be gone already.
        let _ = self.reader.get_ref().shutdown(std::net::Shutdown::Both);
    }
}
