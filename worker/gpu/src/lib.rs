//! NVIDIA GPUs: discovery and monitoring through the driver's management library (NVML), and the MPS daemons
//! that let several processes share a GPU.
//!
//! Every call here may block on the driver, on other processes or on files: call it on a blocking thread. It
//! decides nothing: what is started and stopped, and when, is up to `cohabit-worker-core`. Start reading at
//! [`NvmlSession`] and [`mps`].

mod device_files;
mod driver;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod mps;
mod other_gpus;
pub mod process;

pub use device_files::{DeviceNumber, DeviceRange, GpuDeviceFiles};
pub use driver::{GpuError, GpuProcess, GpuScan, GpusUnavailable, NvmlSession, Xid, XidWatch};
pub use other_gpus::{OtherGpu, other_gpus};
