//! The driver's management library, NVML.
//!
//! ```text
//! library          opens it, and says why there is no GPU
//! session          the thread that owns it: questions and answers
//! discovery        which GPUs there are, and what the driver says of each
//! multiprocessors  how many of them a GPU has
//! peers            how GPUs reach each other
//! look             readings of the moment, and whose memory a GPU holds
//! performance      means over the time between looks, where a GPU has a performance monitor
//! xid              critical errors, as they come
//! trouble          why a GPU could not be looked at
//! ```

mod discovery;
mod library;
mod look;
mod multiprocessors;
mod peers;
mod performance;
mod session;
mod trouble;
mod xid;

pub use library::NoGpus;
pub use look::{GpuProcess, GpuScan};
pub use session::NvmlSession;
pub use trouble::GpuError;
pub use xid::{Xid, XidWatch};
