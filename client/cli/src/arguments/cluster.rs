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
    /// Check the cluster instead of this machine: whether it may be opened to users. Needs an admin's token
    #[arg(long)]
    pub(crate) cluster: bool,
    /// Test NVIDIA MPS on each idle GPU: start its daemon and stop it again
    #[cfg(feature = "worker")]
    #[arg(long, conflicts_with = "cluster")]
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
