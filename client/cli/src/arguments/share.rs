//! Arguments of `share`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;

// Arguments of `share`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ShareArguments {
    #[command(subcommand)]
    pub(crate) verb: Option<ShareVerb>,
    #[command(flatten)]
    list: ShareListArguments,
}

// Commands on shares other than to show them.
#[derive(Debug, Subcommand)]
pub(crate) enum ShareVerb {
    /// Divide the cluster by a table of projects from now on; the table is applied as a whole or not at all
    Apply(ShareApplyArguments),
}

// Arguments of `share` without a command.
#[derive(Debug, Args)]
struct ShareListArguments {
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    display: DisplayArguments,
}

// Arguments of `share apply`.
#[derive(Debug, Args)]
pub(crate) struct ShareApplyArguments {
    /// Table of projects, as docs/SHARING.md describes it
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Print what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    display: DisplayArguments,
}

impl ShareArguments {
    /// The head to ask.
    pub(crate) fn connection(&self) -> &ConnectionArguments {
        match &self.verb {
            Some(ShareVerb::Apply(arguments)) => &arguments.connection,
            None => &self.list.connection,
        }
    }

    /// The display flags.
    pub(crate) fn display(&self) -> &DisplayArguments {
        match &self.verb {
            Some(ShareVerb::Apply(arguments)) => &arguments.display,
            None => &self.list.display,
        }
    }
}
