//! The MPS server: its clients, their limits, and how a fault of one client affects all.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cohabit_fakes::mps::{Fault, FromServer, Limits, Lines, ServerState, ToServer};
use cohabit_fakes::{AbruptEnd, AfterFault, FakeGpu, FakeWorld, GpuRoute, Process, StartScript};

use crate::log::Log;

/// The GPU memory of the server itself.
const OWN_MEMORY: u64 = 27 << 20;

/// CUDA errors.
const LAUNCH_FAILED: i32 = 719;
const ILLEGAL_ADDRESS: i32 = 700;
const SERVER_NOT_READY: i32 = 807;
const MOST_CLIENTS: i32 = 808;
const CLIENT_TERMINATED: i32 = 810;

struct Server {
    log: Log,
    world: FakeWorld,
    gpu: String,
    inside: Mutex<Inside>,
    /// Notified when the server has become active.
    active: Condvar,
}

struct Inside {
    state: ServerState,
    limits: Limits,
    /// The connections of clients.
    clients: BTreeMap<i32, Lines>,
    ending: Ending,
}

/// How a client ended.
enum Leaving {
    Orderly,
    /// By a signal, or by removal.
    Abrupt,
}

/// Whether the server exits when its last client is gone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Stays,
    Ends,
}

pub(crate) fn run() -> ExitCode {
    let Some(world) = FakeWorld::of_this_program() else { return ExitCode::from(2) };
    let devices = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let Some(gpu) = world.visible(devices.as_deref()).into_iter().next() else { return ExitCode::from(100) };
    if let StartScript::Exits(status) = gpu.mps.server {
        return ExitCode::from(u8::try_from(status).unwrap_or(1));
    }
    hold_memory(&world, &gpu);
    let log = Log::inherited("Server");
    log.line("Start");
    let inside = Inside {
        state: ServerState::Initializing,
        limits: Limits::of_environment(&gpu.uuid),
        clients: BTreeMap::new(),
        ending: Ending::Stays,
    };
    let server = Server { log, world, gpu: gpu.uuid, inside: Mutex::new(inside), active: Condvar::new() };
    let server = Arc::new(server);
    server.initialise();
    // The daemon passes the socket as the input.
    let listener = std::io::stdin().as_fd().try_clone_to_owned().map(UnixListener::from);
    let Ok(listener) = listener else { return ExitCode::FAILURE };
    for connection in listener.incoming().flatten() {
        let server = Arc::clone(&server);
        std::thread::spawn(move || server.hear(Lines::over(connection)));
    }
    ExitCode::FAILURE
}

/// Like the real one, it is listed as a process of its GPU.
fn hold_memory(world: &FakeWorld, gpu: &FakeGpu) {
    let family = std::process::id() as i32;
    if let Ok(mut process) = Process::this(GpuRoute::Server, family) {
        // On a full GPU the server is not listed.
        let _ = world.allocate(&mut process, gpu, OWN_MEMORY, None);
    }
}

impl Server {
    /// Creates the contexts, which takes as long as scripted.
    fn initialise(self: &Arc<Server>) {
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            server.log.line("Creating server context on device 0");
            std::thread::sleep(Duration::from_millis(server.script().mps.initialising));
            server.inside().state = ServerState::Active;
            server.active.notify_all();
            server.log.line("Server is ready");
        });
    }

    fn hear(self: &Arc<Server>, mut caller: Lines) {
        let Some(words) = caller.receive() else { return };
        let answer = match words {
            ToServer::Enter(pid) => return self.serve(pid, caller),
            ToServer::State => FromServer::State(self.inside().state),
            ToServer::Clients => FromServer::Clients(self.inside().clients.keys().copied().collect()),
            ToServer::Limits => FromServer::Limits(self.inside().limits),
            ToServer::Limit(limits) => {
                self.inside().limits = limits;
                FromServer::Done
            }
            ToServer::Terminate(pid) => self.terminate(pid),
            ToServer::Shutdown => {
                self.inside().ending = Ending::Ends;
                FromServer::Done
            }
            // Only a connected client can cause a fault.
            ToServer::Fault(_) | ToServer::Leave => return,
        };
        // The client may be gone.
        let _ = caller.send(&answer);
        self.end_if_due();
    }

    /// Accepts a client and serves it until it is gone.
    fn serve(self: &Arc<Server>, pid: i32, mut client: Lines) {
        self.log.line(&format!("Received new client request from process {pid}"));
        if let Err(code) = self.enter(pid, &client) {
            let _ = client.send(&FromServer::Failed(code));
            return;
        }
        if let Leaving::Abrupt = self.attend(pid, &mut client) {
            self.log.line("Receive command failed, assuming client exit");
        }
        self.log.line(&format!("Client process {pid} disconnected"));
        self.recover_if_due();
        self.end_if_due();
    }

    /// Serves a client until it is gone.
    fn attend(&self, pid: i32, client: &mut Lines) -> Leaving {
        loop {
            match client.receive() {
                Some(ToServer::Fault(Fault::Memory)) => self.fault(ILLEGAL_ADDRESS, Some(pid)),
                Some(ToServer::Fault(Fault::Other)) => self.fault(LAUNCH_FAILED, None),
                Some(ToServer::Leave) => {
                    self.inside().clients.remove(&pid);
                    return Leaving::Orderly;
                }
                Some(_) => {}
                None => break,
            }
        }
        // A removed client is not in the list any more.
        let was_in = self.inside().clients.remove(&pid).is_some();
        if was_in && self.script().mps.abrupt_end == AbruptEnd::Faults {
            self.fault(LAUNCH_FAILED, None);
        }
        Leaving::Abrupt
    }

    /// Waits while the server initialises, as a queued client does.
    fn enter(&self, pid: i32, client: &Lines) -> Result<(), i32> {
        let initialising = |inside: &mut Inside| inside.state == ServerState::Initializing;
        let waited = self.active.wait_while(self.inside(), initialising);
        let mut inside = waited.unwrap_or_else(PoisonError::into_inner);
        if inside.state == ServerState::Fault || inside.ending == Ending::Ends {
            return Err(SERVER_NOT_READY);
        }
        if inside.clients.len() >= self.script().mps.most_clients {
            return Err(MOST_CLIENTS);
        }
        let hand = client.second().map_err(|_| SERVER_NOT_READY)?;
        client.send(&FromServer::Entered(inside.limits, self.gpu.clone())).map_err(|_| SERVER_NOT_READY)?;
        inside.clients.insert(pid, hand);
        self.log.line(&format!("New client {pid} connected"));
        Ok(())
    }

    fn terminate(&self, pid: i32) -> FromServer {
        if let Some(client) = self.inside().clients.remove(&pid) {
            let _ = client.send(&FromServer::Failed(CLIENT_TERMINATED));
            client.hang_up();
            self.log.line(&format!("Client {pid} terminated"));
        }
        FromServer::Done
    }

    /// A fatal error of one client affects all. The real server knows the culprit of memory faults only.
    fn fault(&self, code: i32, culprit: Option<i32>) {
        let mut inside = self.inside();
        if inside.state == ServerState::Fault {
            return;
        }
        inside.state = ServerState::Fault;
        self.log.line("Server is handling a fatal GPU error.");
        if let Some(pid) = culprit {
            self.log
                .line(&format!("All clients belonging to error trigging process {pid} will be torn down"));
        }
        self.log.line("The following client process have a sticky error set:");
        for (pid, client) in &inside.clients {
            self.log.line(&format!("Client {{PID: {pid}, Context ID: 0}} on device 0 to be torn down"));
            // The client may be gone.
            let _ = client.send(&FromServer::Failed(code));
        }
        // The driver reports it, too, without a culprit.
        let _ = self.world.emit_xid(&self.gpu, if code == ILLEGAL_ADDRESS { 31 } else { 13 });
    }

    /// Creates new contexts when all clients of the fault are gone.
    fn recover_if_due(self: &Arc<Server>) {
        let mut inside = self.inside();
        let due = inside.state == ServerState::Fault && inside.clients.is_empty();
        if due && self.script().mps.after_fault == AfterFault::Recovers {
            inside.state = ServerState::Initializing;
            drop(inside);
            self.log.line("Destroy server context on device 0");
            self.initialise();
        }
    }

    fn end_if_due(&self) {
        let inside = self.inside();
        if inside.ending == Ending::Ends && inside.clients.is_empty() {
            self.log.line("Exit");
            std::process::exit(0);
        }
    }

    /// The present script of the GPU.
    fn script(&self) -> FakeGpu {
        self.world.gpu(&self.gpu).unwrap_or_default()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
