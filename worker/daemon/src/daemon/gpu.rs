//! The GPUs of this worker: what their ranks need of them, who keeps their MPS daemons, and who looks at
//! them.
//!
//! ```text
//! homes     where each GPU's MPS daemon lives, and what a rank finds of it in its environment
//! mps       the actor of one GPU's MPS daemon
//! sight     one look at an MPS daemon
//! within    a limit to the time that work on one may take
//! proof     whether the ranks on a GPU are within their limits, by what is seen there
//! owners    whose a process is
//! round     one look at all GPUs
//! monitor   the actor that looks at all GPUs
//! xids      critical errors, as the driver reports them
//! crew      all of these actors
//! ```

mod gpu_managers;
mod monitor;
mod mps;
mod mps_directories;
mod mps_health;
mod owners;
mod proof;
mod round;
mod within;
mod xids;

pub(crate) use gpu_managers::GpuManagers;
pub(crate) use mps::MpsMessage;
pub(crate) use mps_directories::MpsDirectories;
