//! Why a comparison cannot begin, or cannot go on.

use std::path::PathBuf;

use cohabit_gpu::mps::MpsError;
use cohabit_gpu::{GpuError, GpusUnavailable};
use cohabit_types::Bytes;

use crate::table::TableError;
use cohabit_host::files::FileError;

/// Why a comparison cannot begin, or cannot go on. What was measured until then is in the table.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is no GPU to speak of.
    #[error("{0}")]
    NoGpus(#[from] GpusUnavailable),
    /// The GPU that was named is not there, or none was named where there are several.
    #[error("{0}")]
    NotThatGpu(String),
    /// Somebody else is on the GPU.
    #[error(
        "GPU {gpu} is in use by {holders}: measured rates would be wrong. Wait, name another with --gpu, or use --force"
    )]
    Busy {
        /// Its UUID.
        gpu: String,
        /// Who.
        holders: String,
    },
    /// A worker or another comparison runs with this state folder.
    #[error(
        "a worker of this machine, or another `cohabit profile`, runs with the state folder {}: stop it, or give \
         --state another folder if it does not use this GPU", .0.display()
    )]
    WorkerHere(PathBuf),
    /// The GPU cannot be shared in a way that was asked for.
    #[error("GPU {gpu} cannot be shared by {sharing}: {why}. Name other ways with --sharing")]
    CannotShare {
        /// Its UUID.
        gpu: String,
        /// The way.
        sharing: &'static str,
        /// Why not.
        why: String,
    },
    /// The table cannot be understood.
    #[error("{}: {trouble}", table.display())]
    Table {
        /// Which.
        table: PathBuf,
        /// Why not.
        trouble: TableError,
    },
    /// A workload of this name in the table is not the same.
    #[error(
        "{}: workload '{workload}' is there with {there}, but now has {now}: give it another name, or write to another \
         file", table.display()
    )]
    OtherWorkload {
        /// Which table.
        table: PathBuf,
        /// Its name.
        workload: String,
        /// What the table says.
        there: String,
        /// What it is now.
        now: String,
    },
    /// Somebody else wrote to the table.
    #[error("{} was changed by somebody else while it was being filled: nothing was overwritten; start again", .0.display())]
    Changed(PathBuf),
    /// Workloads share that nobody measured alone.
    #[error(
        "{0} was not measured alone on this GPU, and will not be: add exclusive to --sharing and 1 to --set-sizes"
    )]
    NotAlone(String),
    /// The GPU does not answer any more.
    #[error("{0}")]
    Gpu(#[from] GpuError),
    /// Memory of processes that ended is still in use.
    #[error(
        "GPU {gpu} did not give back the memory of workloads that ended: {used} in use, {before} before; look for what they left with `cohabit doctor`"
    )]
    NotGivenBack {
        /// Its UUID.
        gpu: String,
        /// Memory in use now.
        used: Bytes,
        /// Memory in use before they began.
        before: Bytes,
    },
    /// MPS does not work.
    #[error("{0}")]
    Mps(#[from] MpsError),
    /// The machine does not do what it should.
    #[error("{0}")]
    Machine(#[from] std::io::Error),
    /// A file or folder refuses.
    #[error(transparent)]
    File(#[from] FileError),
}
