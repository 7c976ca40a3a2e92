//! Why a comparison cannot start or continue.

use std::path::PathBuf;

use cohabit_gpu::mps::MpsError;
use cohabit_gpu::{GpuError, GpusUnavailable};
use cohabit_types::Bytes;

use crate::table::TableError;
use cohabit_host::files::FileError;

/// Why a comparison cannot start or continue. What was measured before is in the table.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No GPU is available.
    #[error("{0}")]
    NoGpus(#[from] GpusUnavailable),
    /// The named GPU does not exist, or none was named although there are several.
    #[error("{0}")]
    NotThatGpu(String),
    /// Other processes use the GPU.
    #[error(
        "GPU {gpu} is in use by {holders}: measured rates would be wrong. Wait, name another GPU with --gpu, or use --force"
    )]
    Busy {
        /// Its UUID.
        gpu: String,
        /// The processes.
        holders: String,
    },
    /// A worker or another comparison uses this state directory.
    #[error(
        "a worker of this host, or another `cohabit profile`, uses the state directory {}: stop it, or name another \
         directory with --state if it does not use this GPU", .0.display()
    )]
    WorkerHere(PathBuf),
    /// The GPU cannot be shared in a requested way.
    #[error("GPU {gpu} cannot be shared by {sharing}: {why}. Name other modes with --sharing")]
    CannotShare {
        /// Its UUID.
        gpu: String,
        /// The way of sharing.
        sharing: &'static str,
        /// Why not.
        why: String,
    },
    /// The table cannot be parsed.
    #[error("{}: {trouble}", table.display())]
    Table {
        /// Its path.
        table: PathBuf,
        /// Why not.
        trouble: TableError,
    },
    /// The table has a different workload of the same name.
    #[error(
        "{}: workload '{workload}' is in the table with {there}, but now has {now}: give it another name, or write to \
         another file", table.display()
    )]
    OtherWorkload {
        /// The path of the table.
        table: PathBuf,
        /// Its name.
        workload: String,
        /// The value in the table.
        there: String,
        /// The present value.
        now: String,
    },
    /// Another process changed the table.
    #[error("{} was changed by another process while it was being filled: nothing was overwritten; start again", .0.display())]
    Changed(PathBuf),
    /// A workload would share the GPU without having been measured alone.
    #[error(
        "{0} has not been measured alone on this GPU, and will not be: add exclusive to --sharing and 1 to --set-sizes"
    )]
    NotAlone(String),
    /// The GPU does not answer any more.
    #[error("{0}")]
    Gpu(#[from] GpuError),
    /// GPU memory of processes that have ended is still in use.
    #[error(
        "GPU {gpu} did not release the memory of workloads that have ended: {used} in use, {before} before; find remaining processes with `cohabit doctor`"
    )]
    NotGivenBack {
        /// Its UUID.
        gpu: String,
        /// Memory in use now.
        used: Bytes,
        /// Memory in use before they started.
        before: Bytes,
    },
    /// MPS does not work.
    #[error("{0}")]
    Mps(#[from] MpsError),
    /// A system call failed.
    #[error("{0}")]
    Machine(#[from] std::io::Error),
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}
