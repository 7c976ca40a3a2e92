//! Arguments of commands on live applications.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::JobRef;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use crate::completion;

// Arguments of `applications`.
#[derive(Debug, Args)]
pub(crate) struct ApplicationsArguments {
    /// List the applications of all users
    #[arg(long)]
    pub(crate) all: bool,
    /// List the applications of this user
    #[arg(long, conflicts_with = "all")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `tasks`.
#[derive(Debug, Args)]
pub(crate) struct TasksArguments {
    #[command(flatten)]
    pub(crate) application: ApplicationArguments,
    /// List only the last COUNT tasks: those that run come first, then those that wait, then those that ended
    #[arg(long, value_name = "COUNT")]
    pub(crate) tail: Option<usize>,
}

// Arguments of `actors` and `objects`, and of `tasks` with more.
#[derive(Debug, Args)]
pub(crate) struct ApplicationArguments {
    /// Live application: its name, or the number of its root job
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub(crate) application: JobRef,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}
