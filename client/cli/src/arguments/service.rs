//! Arguments of `service`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

// Arguments of `service`.
#[derive(Debug, Args)]
pub(crate) struct ServiceArguments {
    #[command(subcommand)]
    pub(crate) verb: ServiceVerb,
}

// Commands on services.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceVerb {
    /// Write a unit of systemd that starts the head or a worker with the machine
    Install(ServiceInstallArguments),
}

// Arguments of `service install`.
#[derive(Debug, Args)]
pub(crate) struct ServiceInstallArguments {
    /// Which daemon
    #[arg(value_enum)]
    pub(crate) daemon: ServiceDaemon,
    /// Directory for the unit [default: /etc/systemd/system, or ~/.config/systemd/user with --user]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Write a unit for the services of your own account, which need no root
    #[arg(long)]
    pub(crate) user: bool,
    /// Print the unit and write nothing
    #[arg(long, conflicts_with_all = ["dir", "force"])]
    pub(crate) print: bool,
    /// Replace a unit that is there and differs
    #[arg(long)]
    pub(crate) force: bool,
    /// Flags of `head start` or `worker start`, after `--`
    #[arg(last = true, value_name = "FLAGS")]
    pub(crate) flags: Vec<String>,
}

/// A daemon that systemd can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceDaemon {
    /// `cohabit head start`
    Head,
    /// `cohabit worker start`
    Worker,
}

impl ServiceDaemon {
    /// The command, as it is typed.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            ServiceDaemon::Head => "head",
            ServiceDaemon::Worker => "worker",
        }
    }
}
