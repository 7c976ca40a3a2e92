//! What the parts of the fake MPS say to each other: the control daemon, its server and their clients.
//!
//! Who wants something of the daemon connects to its control socket and says who it is in one word: a
//! [`Caller`]. The daemon names its server to a client. Server and clients talk in lines of JSON, over a
//! connection that lasts as long as the client.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Where the control daemon listens.
#[must_use]
pub fn control_socket(pipe: &Path) -> PathBuf {
    pipe.join("control")
}

/// Where the server listens.
#[must_use]
pub fn server_socket(pipe: &Path) -> PathBuf {
    pipe.join("fake-server")
}

/// Who calls the control daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The control program, for a session of commands.
    Session,
    /// A program that uses CUDA.
    Client(i32),
}

/// What the control daemon says to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlReply {
    /// To a session: your commands, please.
    Commands,
    /// To a session beside another one that waits for its next command: be silent, and say that all is well.
    Empty,
    /// To a session beside one with a command under way: fail, and say that the daemon cannot be told.
    Unsent,
    /// The same, but fail without a word.
    Silent,
    /// To a client: the server's number.
    Server(i32),
    /// To a client: there is none, and why in CUDA's numbers.
    NoServer(i32),
}

/// What the server is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToServer {
    /// By a client: let me in. I stay until I close.
    Enter(i32),
    /// By a client, of itself: this I did to the GPU.
    Fault(Fault),
    /// By a client: I am done.
    Leave,
    /// By the daemon: everything else, each on a connection of its own.
    State,
    /// Who your clients are.
    Clients,
    /// Remove this client.
    Terminate(i32),
    /// Give later clients these limits.
    Limit(Limits),
    /// Which limits later clients get.
    Limits,
    /// End when the last client is gone.
    Shutdown,
}

/// What the server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromServer {
    /// To a client: you are in, within these limits, and this is the GPU.
    Entered(Limits, String),
    /// To a client, in CUDA's numbers: you are not, or not any more.
    Failed(i32),
    /// How the server is.
    State(ServerState),
    /// Its clients.
    Clients(Vec<i32>),
    /// What later clients get.
    Limits(Limits),
    /// An order is carried out.
    Done,
}

/// What a program can do to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// An access to memory that is not its own: the log names the culprit.
    Memory,
    /// Anything else: the log names nobody.
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
    /// What the environment gives a client, or a server for all its clients, on this GPU, which is its only
    /// one. What nobody understands is no limit.
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

    /// The narrower of both, each in its own right.
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
    /// Makes its contexts.
    Initializing,
    /// Serves.
    Active,
    /// Waits for all clients to go.
    Fault,
}

/// Bytes of a limit in a client's environment: an integer with `G` or `M`. Anything else is none: what CUDA
/// makes of it is not documented, so nobody may rely on it.
#[must_use]
pub fn limit_bytes(text: &str) -> Option<u64> {
    let number = |unit: char| text.strip_suffix(unit)?.parse::<u64>().ok();
    number('G').map(|it| it << 30).or_else(|| number('M').map(|it| it << 20))
}

/// The other way round: gigabytes where they come out even.
#[must_use]
pub fn limit_text(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 30) { format!("{}G", bytes >> 30) } else { format!("{}M", bytes >> 20) }
}

/// A connection to the server, from either side.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<UnixStream>,
}

impl Lines {
    /// Speaks over this connection.
    #[must_use]
    pub fn over(stream: UnixStream) -> Lines {
        Lines { reader: BufReader::new(stream) }
    }

    /// Connects to the server of this pipe directory.
    ///
    /// # Errors
    /// When there is none.
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

    /// The next line; none when the other end is gone.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// A second hand on the connection, to send while the first one receives.
    ///
    /// # Errors
    /// When the system has none left.
    pub fn second(&self) -> io::Result<Lines> {
        self.reader.get_ref().try_clone().map(Lines::over)
    }

    /// Ends the connection for all hands.
    pub fn hang_up(&self) {
        // It may be gone already.
        let _ = self.reader.get_ref().shutdown(std::net::Shutdown::Both);
    }
}
