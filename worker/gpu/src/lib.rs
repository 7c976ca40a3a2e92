//! NVIDIA GPUs: what the driver's management library tells of them, and the MPS daemons that let several
//! processes share one.
//!
//! Everything here waits for the driver, for other processes or for files: call it off the async runtime.

mod driver;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod mps;
pub mod process;

pub use driver::{GpuError, GpuProcess, GpuScan, NoGpus, NvmlSession, Xid, XidWatch};
