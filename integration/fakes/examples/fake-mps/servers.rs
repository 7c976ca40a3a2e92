//! The daemon's hand on its server: start, ask, end.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cohabit_fakes::mps::{FromServer, Limits, Lines, ToServer, limit_text};
use cohabit_fakes::{FakeGpu, FakeWorld};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

use crate::log::Log;

/// A server that does not listen by then never will.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the daemon looks whether something has come about.
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

    /// The GPU that the daemon was started for, as it is scripted now.
    pub(crate) fn gpu(&self) -> FakeGpu {
        gpu(&self.world)
    }

    /// The server that runs.
    pub(crate) fn pid(&self) -> Option<i32> {
        *held(&self.running)
    }

    /// Whether a server of this number runs.
    pub(crate) fn is(&self, server: &str) -> bool {
        self.pid().is_some_and(|pid| server.parse() == Ok(pid))
    }

    /// What later servers begin with.
    pub(crate) fn defaults(&self) -> MutexGuard<'_, Limits> {
        held(&self.defaults)
    }

    /// Starts the server if none runs. Errors are only in the log, as with the real one.
    pub(crate) fn start(&self) {
        let mut running = held(&self.running);
        if running.is_some() {
            return;
        }
        let spawned = self.command().spawn();
        // The real one has forked before it looks for the program.
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

    /// Through the search path, with the daemon's environment.
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

    /// The server, started if need be, once it listens.
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

    /// Asks the server of this number.
    pub(crate) fn ask(&self, pid: i32, words: &ToServer) -> Option<FromServer> {
        if self.pid() != Some(pid) {
            return None;
        }
        let mut server = Lines::to_server(&self.pipe).ok()?;
        server.send(words).ok()?;
        server.receive()
    }

    /// Waits until the server's clients are gone and it has ended, but not longer than this; then by force.
    pub(crate) fn end(&self, patience: Option<Duration>) {
        let begin = Instant::now();
        if let Some(pid) = self.pid() {
            self.ask(pid, &ToServer::Shutdown);
        }
        while let Some(pid) = self.pid() {
            if patience.is_some_and(|it| begin.elapsed() >= it) {
                // It may just have ended.
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

/// The exit status of a server when it has ended; one for all that were killed.
fn ended(mut server: Child) -> i32 {
    server.wait().ok().and_then(|it| it.code()).unwrap_or(1)
}

/// What a thread that failed left behind is still good.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
