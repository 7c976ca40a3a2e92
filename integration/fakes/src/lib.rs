//! A made-up world of GPUs that a fake NVML, a fake MPS and a fake CUDA client share: one folder, which tests
//! write and read.
//!
//! ```text
//! WORLD/gpus.json            the GPUs, and what is scripted to go wrong with them: read anew at every call
//! WORLD/processes/PID.json   who holds memory of which GPU
//! WORLD/xids/…               critical errors that nobody has been told of yet
//! WORLD/bin/                 NVIDIA's programs and library, as far as they are faked (`FakeWorld::install`)
//! WORLD/nvidia-mps/          where clients look for an MPS daemon that nobody named
//! ```
//!
//! The fakes find their world by `COHABIT_FAKE_WORLD`, else by the folder that they were started from.
//!
//! ```text
//! gpu        a GPU and its script                    install   the fakes in a world's bin folder
//! world      the folder: open, read, change          mps       words between the parts of the fake MPS
//! processes  who holds which memory; allocating      packets   the sockets of NVIDIA's control program
//! xids       critical errors, each told once
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
