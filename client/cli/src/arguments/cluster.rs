//! Arguments of `nodes`, `top` and `doctor`. `worker drain` and `worker resume` are in `daemons`.

#[cfg(feature = "worker")]
use std::path::PathBuf;

use clap::Args;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;

// Arguments of `nodes`.
#[derive(Debug, Args)]
pub(crate) struct NodesArguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `top`.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Test NVIDIA MPS on each idle GPU: start its daemon and stop it again
    #[cfg(feature = "worker")]
    #[arg(long)]
    pub(crate) probe: bool,
    /// Path of NVIDIA's management library (NVML), if not in the standard location [env:
    /// COHABIT_NVML_LIBRARY]
    #[cfg(feature = "worker")]
    #[arg(long, value_name = "FILE")]
    pub(crate) nvml_library: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}
