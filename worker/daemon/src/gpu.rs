//! The GPUs of this worker: the MPS daemons, the monitor, and what ranks need to use a GPU.
//!
//! ```text
//! gpu_managers           starts the actors of this directory                        (start here)
//! mps                    the actor of one GPU's MPS daemon; `orders` carries out the core's orders
//! mps_health             one health check of an MPS daemon
//! mps_directories        the directory of each MPS daemon, and what a rank finds of it in its environment
//! gpu_numbers            how a rank names its GPUs
//! framework_memory       variables that keep frameworks within the limit of a rank
//! container_environment  the same variables for a program in a container
//! client_limits          which clients of an MPS server dropped their limit
//! enforcement            whether the ranks on a GPU are within their limits
//! monitor                the actor that scans all GPUs
//! scan_round             one scan of all GPUs
//! process_owners         which rank a process belongs to
//! xids                   critical errors, as the driver reports them
//! timeout                a limit to the time that blocking work may take
//! ```

mod client_limits;
mod container_environment;
mod enforcement;
mod framework_memory;
mod gpu_managers;
mod gpu_numbers;
mod monitor;
mod mps;
mod mps_directories;
mod mps_health;
mod process_owners;
mod scan_round;
mod timeout;
mod xids;

pub(crate) use gpu_managers::{GpuManagers, MpsService};
pub(crate) use gpu_numbers::GpuNumbers;
pub(crate) use mps::MpsMessage;
pub(crate) use mps_directories::MpsDirectories;
pub(crate) use process_owners::ProcessOwners;
