//! The methods by which builders change what a job claims.

use cohabit_types::{Bytes, GpuRequest, Share};

use crate::error::{Error, Result};

/// Methods that set claims, of a type with a method `claim`.
macro_rules! claim_setters {
    () => {
        /// A share of a GPU (0.5), whole GPUs (1, 2), or none (0).
        pub fn gpus(self, gpus: impl Into<f64>) -> Self {
            self.claim(crate::claim_setters::share(gpus.into()), |claims, share| claims.gpus = share)
        }

        /// Memory on each GPU, such as `8G`.
        pub fn gpu_memory(self, memory: &str) -> Self {
            self.claim(crate::claim_setters::bytes(memory), |claims, bytes| claims.gpu_memory = Some(bytes))
        }

        /// Processor cores; 0 claims none.
        pub fn cpus(self, cpus: u32) -> Self {
            self.claim(Ok(cpus), |claims, cpus| claims.cpus = cpus)
        }

        /// Host memory, such as `2G`.
        pub fn memory(self, memory: &str) -> Self {
            self.claim(crate::claim_setters::bytes(memory), |claims, bytes| claims.memory = bytes)
        }

        /// It shares a GPU only where its limits are enforced.
        pub fn enforced(self) -> Self {
            self.claim(Ok(true), |claims, enforced| claims.enforced = enforced)
        }

        /// Nobody else may use its GPU.
        pub fn exclusive(self) -> Self {
            self.claim(Ok(true), |claims, exclusive| claims.exclusive = exclusive)
        }
    };
}
pub(crate) use claim_setters;

/// Thousandths of a GPU.
pub(crate) fn share(gpus: f64) -> Result<u32> {
    match GpuRequest::try_from(gpus).map_err(Error::Refused)? {
        GpuRequest::Part(Share(share)) => Ok(share),
        GpuRequest::Whole(count) => count
            .checked_mul(Share::WHOLE.0)
            .ok_or_else(|| Error::Refused(format!("{gpus} GPUs are more than any node has: claim less"))),
    }
}

pub(crate) fn bytes(text: &str) -> Result<u64> {
    text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| Error::Refused(error.to_string()))
}
