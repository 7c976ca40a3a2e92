//! How the daemon controls its server: start, query, end.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cohabit_fakes::mps::{FromServer, Limits, Lines, ToServer, limit_text, server_socket};
use cohabit_fakes::{FakeGpu, FakeWorld, StatusCommand, WORLD_VARIABLE};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

use crate::log::{self, Log};
use crate::release::Release;

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two polls.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Servers {
    world: FakeWorld,
    pipe: PathBuf,
    log: Arc<Log>,
    users: Users,
    running: Arc<Mutex<Option<Running>>>,
    defaults: Mutex<Limits>,
}

/// A server that runs.
#[derive(Debug, Clone, Copy)]
struct Running {
    pid: i32,
    user: u32,
}

/// Whose processes a server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// Those of all users, as root.
    All,
    /// Those of its user. A process of another waits until the last client has gone, and gets a new server.
    OneAtATime,
}

impl Servers {
    pub(crate) fn new(world: FakeWorld, users: Users, pipe: PathBuf, log: Arc<Log>) -> Servers {
        let defaults = Mutex::new(Limits::of_environment(&gpu(&world).uuid));
        Servers { world, pipe, log, users, running: Arc::default(), defaults }
    }

    /// The present script of the GPU of the daemon.
    pub(crate) fn gpu(&self) -> FakeGpu {
        gpu(&self.world)
    }

    /// Whether the control program knows the command `get_server_status`.
    pub(crate) fn knows_status(&self) -> bool {
        Release::of(&self.world) > Release::R535 && self.gpu().mps.status == StatusCommand::Known
    }

    /// The running server.
    pub(crate) fn pid(&self) -> Option<i32> {
        held(&self.running).map(|server| server.pid)
    }

    /// Whether a server with this process id runs.
    pub(crate) fn is(&self, server: &str) -> bool {
        self.pid().is_some_and(|pid| server.parse() == Ok(pid))
    }

    /// The limits of later servers.
    pub(crate) fn defaults(&self) -> MutexGuard<'_, Limits> {
        held(&self.defaults)
    }

    /// Starts a server for this user if none runs. Like the real one, it reports errors only in the log.
    pub(crate) fn start(&self, user: u32) {
        let user = match self.users {
            Users::All => Uid::current().as_raw(),
            Users::OneAtATime => user,
        };
        let mut running = held(&self.running);
        if running.is_some() {
            return;
        }
        let spawned = self.command(user).and_then(|mut command| command.spawn());
        // The real one forks before it looks for the program.
        let pid = spawned.as_ref().map_or(std::process::id() + 1, Child::id) as i32;
        self.log.line(&format!("Starting new server {pid} for user {user}"));
        match spawned {
            Ok(server) => {
                *running = Some(Running { pid, user });
                let (slot, log) = (Arc::clone(&self.running), Arc::clone(&self.log));
                std::thread::spawn(move || {
                    let status = ended(server);
                    log.line(&format!("Server {pid} exited with status {status}"));
                    *held(&slot) = None;
                });
            }
            Err(_) => self.log.line(&format!("Server {pid} exited with status 1")),
        }
    }

    /// Looks the program up in the search path, and starts it with the daemon's environment, as this user. It
    /// gets its socket as its input, and its log as its output: its user may not reach their directories.
    fn command(&self, user: u32) -> io::Result<Command> {
        let mut command = Command::new("nvidia-cuda-mps-server");
        let socket = self.listen()?;
        let log = log::file("server.log").map_or_else(Stdio::null, Stdio::from);
        command.stdin(OwnedFd::from(socket)).stdout(log).stderr(Stdio::null());
        command.env(WORLD_VARIABLE, self.world.root());
        if user != Uid::current().as_raw() {
            command.uid(user);
        }
        let defaults = *self.defaults();
        command.env("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", defaults.percentage.to_string());
        if let Some(memory) = defaults.memory {
            command.env("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={}", limit_text(memory)));
        }
        Ok(command)
    }

    /// The socket of the next server, which clients of any user may reach.
    fn listen(&self) -> io::Result<UnixListener> {
        let path = server_socket(&self.pipe);
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let socket = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        Ok(socket)
    }

    /// The server of a client of this user once it listens; started if necessary.
    pub(crate) fn ensure(&self, user: u32) -> Option<i32> {
        self.make_way(user);
        self.start(user);
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let pid = self.pid()?;
            if Lines::to_server(&self.pipe).is_ok() {
                return Some(pid);
            }
            std::thread::sleep(LOOK);
        }
        None
    }

    /// Waits until the server of another user has no clients, and ends it.
    fn make_way(&self, user: u32) {
        let others = || held(&self.running).filter(|it| self.users == Users::OneAtATime && it.user != user);
        while let Some(server) = others() {
            match self.ask(server.pid, &ToServer::Clients) {
                Some(FromServer::Clients(clients)) if clients.is_empty() => self.end(None),
                _ => std::thread::sleep(LOOK),
            }
        }
    }

    /// Sends a request to the server with this process id.
    pub(crate) fn ask(&self, pid: i32, words: &ToServer) -> Option<FromServer> {
        if self.pid() != Some(pid) {
            return None;
        }
        let mut server = Lines::to_server(&self.pipe).ok()?;
        server.send(words).ok()?;
        server.receive()
    }

    /// Waits until the server has ended after its last client, at most this long; then kills it.
    pub(crate) fn end(&self, patience: Option<Duration>) {
        let begin = Instant::now();
        if let Some(pid) = self.pid() {
            self.ask(pid, &ToServer::Shutdown);
        }
        while let Some(pid) = self.pid() {
            if patience.is_some_and(|it| begin.elapsed() >= it) {
                // It may have just ended.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn gpu(world: &FakeWorld) -> FakeGpu {
    let devices = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    world.visible(devices.as_deref()).into_iter().next().unwrap_or_default()
}

/// The exit code of a server that has ended; 1 if it was killed.
fn ended(mut server: Child) -> i32 {
    server.wait().ok().and_then(|it| it.code()).unwrap_or(1)
}

/// Locks a mutex, even if a thread panicked with it.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
