//! Choosing a GPU that other jobs use.
//!
//! A job that asks for part of one GPU goes where a `DeviceChooser` (`chooser.rs`) says; all other jobs go
//! where the mapped placer says. So policies that share GPUs differ only in which jobs they put together.
//! The simple choosers live here; ISACPP's and the hybrid's are in directories of their own. `multi_stage/`
//! estimates how co-located jobs progress until each of them has ended. Whether a job fits a GPU is decided
//! in `view/` alone.

mod chooser;
mod first_fit;
mod free_device;
mod horus;
mod jobs;
mod least_loaded;
pub(crate) mod multi_stage;
mod shared_placer;
mod slowness;
#[cfg(test)]
mod tests;
mod util_threshold;

pub(crate) use chooser::{DeviceChoice, DeviceChooser};
pub(crate) use first_fit::FirstFitSharing;
pub(crate) use free_device::{FreeDevice, least_loaded};
pub(crate) use horus::Horus;
pub(crate) use jobs::Jobs;
pub(crate) use least_loaded::LeastLoaded;
pub(crate) use shared_placer::SharedPlacer;
pub(crate) use slowness::compute_slowness;
pub(crate) use util_threshold::UtilThreshold;
