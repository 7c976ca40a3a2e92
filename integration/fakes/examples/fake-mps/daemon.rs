//! The control daemon: one session of commands at a time, and clients that ask for the server.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cohabit_fakes::mps::{Caller, ControlReply, control_socket};
use cohabit_fakes::{FakeWorld, Listener, Packets};
use nix::sys::stat::Mode;
use nix::unistd::{Uid, mkfifo};

use crate::commands::{self, Answer};
use crate::log::{Echo, Log};
use crate::release::Release;
use crate::servers::{Servers, Users};

struct Daemon {
    log: Arc<Log>,
    servers: Servers,
    session: Mutex<Session>,
    pipe: PathBuf,
}

/// Whether a session is open, and how other sessions are rejected meanwhile.
enum Session {
    None,
    /// It waits for its next command.
    Idle,
    /// It waits for an answer; this many other sessions were rejected since.
    Busy(u32),
}

/// Serves until the command `quit`. Calls `ready` when callers can connect.
pub(crate) fn serve(
    world: &FakeWorld,
    echo: Echo,
    users: Users,
    lock: File,
    ready: impl FnOnce(),
) -> ExitCode {
    let pipe = crate::pipe_directory();
    let Ok(listener) = occupy(&pipe, Release::of(world)) else { return ExitCode::FAILURE };
    let log = Arc::new(Log::open("control.log", "Control", echo));
    log.line(&format!(
        "Starting control daemon using socket {} (of a fake MPS)",
        control_socket(&pipe).display()
    ));
    log.line(&format!(
        "To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY={}",
        pipe.display()
    ));
    let servers = Servers::new(world.clone(), users, pipe.clone(), Arc::clone(&log));
    let daemon = Arc::new(Daemon { log, servers, session: Mutex::new(Session::None), pipe });
    ready();
    while let Ok(caller) = listener.accept() {
        let daemon = Arc::clone(&daemon);
        std::thread::spawn(move || daemon.welcome(&caller));
    }
    drop(lock);
    ExitCode::FAILURE
}

/// Creates the files that the real daemon creates.
fn occupy(pipe: &Path, release: Release) -> std::io::Result<Listener> {
    let listener = Listener::bind(&control_socket(pipe))?;
    // Any user who reaches the directory can connect.
    fs::set_permissions(control_socket(pipe), Permissions::from_mode(0o666))?;
    fs::write(pipe.join("control_privileged"), "")?;
    if release > Release::R535 {
        fs::write(pipe.join("nvidia-cuda-mps-control.pid"), std::process::id().to_string())?;
    }
    // A socket that an unclean exit left.
    let _ = mkfifo(&pipe.join("log"), Mode::from_bits_truncate(0o600));
    Ok(listener)
}

impl Daemon {
    fn welcome(&self, caller: &Packets) {
        let words = caller.receive().unwrap_or_default();
        match serde_json::from_str(&words) {
            Ok(Caller::Client(pid)) => say(caller, self.refer(pid)),
            Ok(Caller::Session) => match self.begin_session() {
                Ok(()) => {
                    self.log.line("NEW UI");
                    say(caller, ControlReply::Commands);
                    self.converse(caller);
                    self.log.line("UI closed");
                    *self.session() = Session::None;
                }
                Err(refusal) => say(caller, refusal),
            },
            // A probe of the socket.
            Err(_) => {}
        }
    }

    /// The server for a client, which is started if there is none.
    fn refer(&self, pid: i32) -> ControlReply {
        let user = user_of(pid);
        let known =
            if self.servers.pid().is_some() { "Server already exists" } else { "Server is not ready" };
        self.log.line(&format!("NEW CLIENT {pid} from user {user}: {known}"));
        match self.servers.ensure(user) {
            Some(server) => ControlReply::Server(server),
            None => ControlReply::NoServer(805),
        }
    }

    fn begin_session(&self) -> Result<(), ControlReply> {
        let mut session = self.session();
        match &mut *session {
            Session::None => {
                *session = Session::Idle;
                Ok(())
            }
            Session::Idle => Err(ControlReply::Empty),
            Session::Busy(refused) => {
                *refused += 1;
                Err(if refused.is_multiple_of(2) { ControlReply::Silent } else { ControlReply::Unsent })
            }
        }
    }

    fn converse(&self, caller: &Packets) {
        while let Some(command) = caller.receive() {
            *self.session() = Session::Busy(0);
            self.log.line(&format!("Cmd:{command}"));
            match commands::answer(&self.servers, &command) {
                Answer::Text(text) => {
                    text.lines().for_each(|line| self.log.line(line));
                    *self.session() = Session::Idle;
                    if caller.send(&text).is_err() {
                        return;
                    }
                }
                Answer::Quit(patience) => self.quit(patience),
                // Other sessions find this one busy until the caller disconnects.
                Answer::Never => while caller.receive().is_some() {},
            }
        }
    }

    /// Ends the server and then the daemon with all its connections.
    fn quit(&self, patience: Option<Duration>) -> ! {
        self.servers.end(patience);
        self.log.line("Exit with status 0");
        // A clean exit only leaves the sockets.
        for name in ["nvidia-cuda-mps-control.pid", "log"] {
            let _ = fs::remove_file(self.pipe.join(name));
        }
        std::process::exit(0);
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The user of a process.
fn user_of(pid: i32) -> u32 {
    fs::metadata(format!("/proc/{pid}")).map_or_else(|_| Uid::current().as_raw(), |it| it.uid())
}

fn say(caller: &Packets, welcome: ControlReply) {
    // The caller may be gone.
    let _ = caller.send(&serde_json::to_string(&welcome).unwrap_or_default());
}
