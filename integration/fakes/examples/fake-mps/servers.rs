//! How the daemon controls its server: start, query, end.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cohabit_fakes::mps::{FromServer, Limits, Lines, ToServer, limit_text};
use cohabit_fakes::{FakeGpu, FakeWorld};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

use crate::log::Log;

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two polls.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Servers {
    world: FakeWorld,
    pipe: PathBuf,
    log: Arc<Log>,
    running: Arc<Mutex<Option<i32>>>,
    defaults: Mutex<Limits>,
}

impl Servers {
    pub(crate) fn new(world: FakeWorld, pipe: PathBuf, log: Arc<Log>) -> Servers {
        let defaults = Mutex::new(Limits::of_environment(&gpu(&world).uuid));
        Servers { world, pipe, log, running: Arc::default(), defaults }
    }

    /// The present script of the GPU of the daemon.
    pub(crate) fn gpu(&self) -> FakeGpu {
        gpu(&self.world)
    }

    /// The running server.
    pub(crate) fn pid(&self) -> Option<i32> {
        *held(&self.running)
    }

    /// Whether a server with this process id runs.
    pub(crate) fn is(&self, server: &str) -> bool {
        self.pid().is_some_and(|pid| server.parse() == Ok(pid))
    }

    /// The limits of later servers.
    pub(crate) fn defaults(&self) -> MutexGuard<'_, Limits> {
        held(&self.defaults)
    }

    /// Starts the server if none runs. Like the real one, it reports errors only in the log.
    pub(crate) fn start(&self) {
        let mut running = held(&self.running);
        if running.is_some() {
            return;
        }
        let spawned = self.command().spawn();
        // The real one forks before it looks for the program.
        let pid = spawned.as_ref().map_or(std::process::id() + 1, Child::id) as i32;
        self.log.line(&format!("Starting new server {pid} for user {}", Uid::current()));
        match spawned {
            Ok(server) => {
                *running = Some(pid);
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

    /// Looks the program up in the search path, and starts it with the daemon's environment.
    fn command(&self) -> Command {
        let mut command = Command::new("nvidia-cuda-mps-server");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let defaults = *self.defaults();
        command.env("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", defaults.percentage.to_string());
        if let Some(memory) = defaults.memory {
            command.env("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={}", limit_text(memory)));
        }
        command
    }

    /// The server once it listens; started if necessary.
    pub(crate) fn ensure(&self) -> Option<i32> {
        self.start();
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
