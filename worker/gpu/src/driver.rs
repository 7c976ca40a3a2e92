//! The driver's management library, NVML.
//!
//! ```text
//! session          the thread that owns the library; the public interface   (start here)
//! library          opens it, and explains why no GPU is available
//! discovery        the GPUs of this host and their properties
//! multiprocessors  how many multiprocessors a GPU has
//! peers            how GPUs are connected to each other
//! scan             present readings of a GPU, and the processes that use its memory
//! performance      averages between two scans, where a GPU has a performance monitor
//! xid              critical errors, as the driver reports them
//! error            why a GPU could not be queried
//! ```

mod discovery;
mod error;
mod library;
mod multiprocessors;
mod peers;
mod performance;
mod scan;
mod session;
mod xid;

pub use error::GpuError;
pub use library::GpusUnavailable;
pub use scan::{GpuProcess, GpuScan};
pub use session::NvmlSession;
pub use xid::{Xid, XidWatch};
