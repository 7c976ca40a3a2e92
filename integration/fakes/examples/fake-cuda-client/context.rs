//! The CUDA context of a process: which GPU, through MPS or not, its memory, and sticky errors.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use cohabit_fakes::mps::{Caller, ControlReply, Fault, FromServer, Limits, Lines, ToServer, control_socket};
use cohabit_fakes::{ComputeMode, FakeGpu, FakeWorld, GpuRoute, Packets, Process, visible};

use crate::arguments::Arguments;
use crate::errors::CudaError;

const DEVICES_UNAVAILABLE: i32 = 46;
const NO_DEVICE: i32 = 100;
const ILLEGAL_ADDRESS: i32 = 700;
const LAUNCH_FAILED: i32 = 719;
const CONNECTION_FAILED: i32 = 805;
const RPC_FAILURE: i32 = 806;

/// The context of this process.
pub(crate) struct Context {
    world: FakeWorld,
    pub(crate) gpus: Vec<FakeGpu>,
    pub(crate) process: Process,
    pub(crate) limits: Limits,
    server: Option<Lines>,
    /// The sticky CUDA error that every call returns; 0 for none.
    sticky: Arc<AtomicI32>,
}

impl Context {
    /// Opens the GPUs that the environment names: through MPS if a daemon runs, else silently without it.
    pub(crate) fn create(arguments: &Arguments, world: &FakeWorld) -> Result<Context, CudaError> {
        let gpus = world.visible(visible_devices().as_deref());
        if gpus.is_empty() {
            return Err(CudaError::Code(NO_DEVICE));
        }
        let family = arguments.follow.unwrap_or(std::process::id() as i32);
        let mut context = Context {
            world: world.clone(),
            gpus,
            process: Process::this(GpuRoute::Itself, family)?,
            limits: Limits::default(),
            server: None,
            sticky: Arc::default(),
        };
        match control(world).filter(|_| !arguments.bypass_mps) {
            Some(control) => context.enter(&control)?,
            None => context.take_turns()?,
        }
        context.allocate(arguments, 0)?;
        Ok(context)
    }

    /// Connects to the server that the daemon names.
    fn enter(&mut self, control: &Packets) -> Result<(), CudaError> {
        let pid = self.process.pid;
        let caller = serde_json::to_string(&Caller::Client(pid)).unwrap_or_default();
        let welcome = control.send(&caller).ok().and_then(|()| control.receive());
        let server = match welcome.and_then(|words| serde_json::from_str(&words).ok()) {
            Some(ControlReply::Server(server)) => server,
            Some(ControlReply::NoServer(code)) => return Err(CudaError::Code(code)),
            _ => return Err(CudaError::Code(CONNECTION_FAILED)),
        };
        let mut lines =
            Lines::to_server(&pipe(&self.world)).map_err(|_| CudaError::Code(CONNECTION_FAILED))?;
        let heard = lines.send(&ToServer::Enter(pid)).ok().and_then(|()| lines.receive());
        match heard {
            Some(FromServer::Entered(limits, gpu)) => {
                self.limits = Limits::of_environment(&gpu).within(limits);
                self.see_only(&gpu)?;
            }
            Some(FromServer::Failed(code)) => return Err(CudaError::Code(code)),
            _ => return Err(CudaError::Code(CONNECTION_FAILED)),
        }
        self.process.via = GpuRoute::Client(server);
        self.server = Some(lines.second()?);
        let sticky = Arc::clone(&self.sticky);
        std::thread::spawn(move || {
            let code = match lines.receive() {
                Some(FromServer::Failed(code)) => code,
                // It has ended.
                _ => RPC_FAILURE,
            };
            sticky.store(code, Ordering::SeqCst);
        });
        Ok(())
    }

    /// Under MPS the only GPU is number 0.
    fn see_only(&mut self, uuid: &str) -> Result<(), CudaError> {
        let served = self.world.gpu(uuid).into_iter().collect();
        self.gpus = visible(served, visible_devices().as_deref());
        if self.gpus.is_empty() { Err(CudaError::Code(NO_DEVICE)) } else { Ok(()) }
    }

    /// Without MPS, the compute mode may exclude this process.
    fn take_turns(&self) -> Result<(), CudaError> {
        let closed = |gpu: &FakeGpu| match gpu.compute_mode {
            ComputeMode::Default => false,
            ComputeMode::ExclusiveProcess => !self.world.processes_on(&gpu.uuid).is_empty(),
            ComputeMode::Prohibited => true,
        };
        if self.gpus.iter().any(closed) { Err(CudaError::Code(DEVICES_UNAVAILABLE)) } else { Ok(()) }
    }

    /// Allocates this much more of each GPU.
    pub(crate) fn allocate(&mut self, arguments: &Arguments, bytes: u64) -> Result<(), CudaError> {
        for gpu in &self.gpus {
            let taken = self.world.allocate(&mut self.process, gpu, bytes, self.limits.memory)?;
            taken.map_err(|missing| CudaError::OutOfMemory {
                framework: arguments.oom_text,
                missing,
                capacity: gpu.memory,
            })?;
        }
        Ok(())
    }

    /// The present result of every CUDA call.
    pub(crate) fn check(&self) -> Result<(), CudaError> {
        match self.sticky.load(Ordering::SeqCst) {
            0 => Ok(()),
            code => Err(CudaError::Code(code)),
        }
    }

    /// Causes this fault. Without MPS it affects no other process.
    pub(crate) fn fault(&self, fault: Fault) -> Result<(), CudaError> {
        match &self.server {
            // The error arrives as at all other clients.
            Some(server) => server.send(&ToServer::Fault(fault))?,
            None => {
                let (code, xid) = match fault {
                    Fault::Memory => (ILLEGAL_ADDRESS, 31),
                    Fault::Other => (LAUNCH_FAILED, 13),
                };
                self.sticky.store(code, Ordering::SeqCst);
                self.world.emit_xid(&self.gpus[0].uuid, xid)?;
            }
        }
        Ok(())
    }

    /// The other processes that compute on the same GPUs now.
    pub(crate) fn co_runners(&self) -> Vec<Process> {
        let shares = |it: &Process| self.gpus.iter().any(|gpu| it.holds.contains_key(&gpu.uuid));
        let works =
            |it: &Process| it.pid == it.family && matches!(it.via, GpuRoute::Itself | GpuRoute::Client(_));
        let others = self.world.processes().into_iter().filter(|it| it.family != self.process.family);
        others.filter(|it| works(it) && shares(it)).collect()
    }
}

/// A process that exits disconnects from its server; one that is killed does not.
impl Drop for Context {
    fn drop(&mut self) {
        // The server may be gone.
        let _ = self.server.as_ref().map(|server| server.send(&ToServer::Leave));
    }
}

/// The daemon, if one can be reached in the directory that the environment names.
fn control(world: &FakeWorld) -> Option<Packets> {
    Packets::connect(&control_socket(&pipe(world))).ok()
}

fn visible_devices() -> Option<String> {
    std::env::var("CUDA_VISIBLE_DEVICES").ok()
}

fn pipe(world: &FakeWorld) -> PathBuf {
    std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").map_or_else(|| world.default_pipe(), PathBuf::from)
}
