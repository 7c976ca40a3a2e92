//! A fake world of GPUs, shared by a fake NVML, a fake MPS and a fake CUDA client: one directory that tests
//! write and read.
//!
//! ```text
//! WORLD/gpus.json            the GPUs and their scripted failures: read again at every call
//! WORLD/processes/PID.json   the GPU memory of a process
//! WORLD/xids/…               critical errors that were not yet reported
//! WORLD/bin/                 the fakes of NVIDIA's programs and library (`FakeWorld::install`)
//! WORLD/nvidia-mps/          the default directory of an MPS daemon
//! ```
//!
//! The fakes find their world by `COHABIT_FAKE_WORLD`, else by the directory of their program.
//!
//! ```text
//! gpu        a GPU and its script                    install   the fakes in a world's bin directory
//! world      the directory: open, read, change       mps       messages between the parts of the fake MPS
//! processes  GPU memory of processes; allocation     packets   the sockets of NVIDIA's control program
//! xids       critical errors, each reported once
//! ```

mod gpu;
mod install;
pub mod mps;
mod packets;
mod processes;
mod world;
mod xids;

pub use gpu::{
    AbruptEnd, AfterFault, ComputeMode, FakeGpu, Library, LibraryStart, Mig, MpsScript, NvmlFault,
    Performance, Quit, StartScript, StatusCommand, Terminate, Topology,
};
pub use install::{Installed, examples};
pub use packets::{Listener, Packets};
pub use processes::{GpuRoute, OutOfMemory, Process};
pub use world::{FakeWorld, WORLD_VARIABLE, visible};
pub use xids::FakeXid;
