//! The driver's management library, NVML.

use std::path::Path;
use std::time::Duration;

use cohabit_proto::{Bytes, Device, DeviceId, GpuReading};

/// Why there is no GPU to speak of.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoGpus(pub String);

/// Why a GPU could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// It fell off the bus, or does not answer any more.
    #[error("{0}")]
    Lost(String),
    /// It may answer the next time.
    #[error("{0}")]
    Other(String),
}

/// All GPUs of this machine.
#[derive(Debug)]
pub struct Gpus {}

/// What one look at a GPU shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Readings of the moment.
    pub reading: GpuReading,
    /// Processes that hold memory of it, each once.
    pub processes: Vec<GpuProcess>,
}

/// A process on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuProcess {
    /// By the numbers of the host.
    pub pid: i32,
    /// Memory it holds, where the driver tells.
    pub memory: Option<Bytes>,
}

/// A critical error that the driver reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xid {
    /// Of which GPU.
    pub device: DeviceId,
    /// Its number.
    pub code: u64,
}

/// Waits for critical errors.
#[derive(Debug)]
pub struct XidWatch {}

impl Gpus {
    /// Opens the library: this one, or the one by its usual name.
    ///
    /// # Errors
    /// Why there is no GPU to speak of, and what to do about it.
    pub fn open(library: Option<&Path>) -> Result<Gpus, NoGpus> {
        unimplemented!("{library:?}")
    }

    /// All GPUs that say what they are, with their condition: `sharing` as MPS may be used on each (`mps`).
    pub fn devices(&self) -> Vec<Result<Device, GpuError>> {
        unimplemented!()
    }

    /// Looks at a GPU.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn look(&self, device: &DeviceId) -> Result<Look, GpuError> {
        unimplemented!("{device}")
    }

    /// Begins to listen for critical errors of all GPUs.
    ///
    /// # Errors
    /// Where the driver has no such events.
    pub fn xids(&self) -> Result<XidWatch, GpuError> {
        unimplemented!()
    }
}

impl XidWatch {
    /// The next error, if one comes in this time.
    ///
    /// # Errors
    /// When there will be no more.
    pub fn next(&self, patience: Duration) -> Result<Option<Xid>, GpuError> {
        unimplemented!("{patience:?}")
    }
}
