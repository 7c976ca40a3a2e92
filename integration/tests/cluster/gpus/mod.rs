//! Jobs that share GPUs under MPS, with the fakes in place of the hardware and of NVIDIA's programs.
//!
//! Head, worker, executors and all that speaks to NVML and MPS are what ships.

mod applications;
mod device_files;
mod devices;
mod doctor;
mod drivers;
mod fallback;
mod faults;
mod interference;
pub(crate) mod kit;
mod limits;
mod restarts;
mod sharing;
mod usage;
