//! The error messages of CUDA and of frameworks.

use std::fmt;

use cohabit_fakes::OutOfMemory;

use crate::arguments::Framework;

/// Why the training cannot continue.
#[derive(Debug)]
pub(crate) enum CudaError {
    /// A CUDA error.
    Code(i32),
    /// Out of GPU memory.
    OutOfMemory { framework: Framework, missing: OutOfMemory, capacity: u64 },
    /// The fake world is broken.
    Outside(std::io::Error),
}

impl From<std::io::Error> for CudaError {
    fn from(error: std::io::Error) -> CudaError {
        CudaError::Outside(error)
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CudaError::Code(code) => write!(f, "RuntimeError: CUDA error: {} ({code})", meaning(*code)),
            CudaError::OutOfMemory { framework: Framework::Torch, missing, capacity } => write!(
                f,
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} \
                 of which {} is free.",
                binary(missing.wanted),
                binary(*capacity),
                binary(missing.free)
            ),
            CudaError::OutOfMemory { framework: Framework::Jax, missing, .. } => write!(
                f,
                "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate \
                 {} bytes.",
                missing.wanted
            ),
            CudaError::Outside(error) => write!(f, "the fake world is broken: {error}"),
        }
    }
}

fn meaning(code: i32) -> &'static str {
    match code {
        46 => "all CUDA-capable devices are busy or unavailable",
        100 => "no CUDA-capable device is detected",
        700 => "an illegal memory access was encountered",
        719 => "unspecified launch failure",
        805 => "MPS client failed to connect to the MPS control daemon or the MPS server",
        806 => "the remote procedural call between the MPS server and the MPS client failed",
        807 => "the MPS server is not ready to accept new MPS client requests",
        808 => "the hardware resources required to create MPS client have been exhausted",
        810 => "the MPS client has been terminated",
        _ => "unknown error",
    }
}

/// A size in PyTorch's format.
fn binary(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 { format!("{mebibytes:.2} MiB") } else { format!("{:.2} GiB", mebibytes / 1024.0) }
}
