//! Arguments of `reserve`.

use clap::{ArgGroup, Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::Span;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use crate::completion;
use crate::values::{self, BeginTime};

// Arguments of `reserve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group = ArgGroup::new("whose").args(["maintenance", "user", "project"]).required(true).multiple(true))]
pub(crate) struct ReserveArguments {
    #[command(subcommand)]
    pub(crate) verb: Option<ReserveVerb>,
    /// Run no jobs there: the nodes are drained when it begins, and resumed when it ends
    #[arg(long, conflicts_with_all = ["user", "project"])]
    pub(crate) maintenance: bool,
    /// Run only jobs of this user there (several: --user ada,ben)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) user: Vec<String>,
    /// Run only jobs of users of this project there (`cohabit share`)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) project: Vec<String>,
    /// Names of the nodes, with commas between them
    #[arg(long, value_name = "NODES", value_delimiter = ',', required = true)]
    #[arg(add = ArgValueCompleter::new(completion::nodes))]
    pub(crate) nodes: Vec<String>,
    /// When it begins: now+2h, 18:00 or "2026-12-01 18:00" [default: now]
    #[arg(long, value_name = "TIME", value_parser = values::parse_begin)]
    pub(crate) from: Option<BeginTime>,
    /// How long it lasts [default: until it is cancelled]
    #[arg(long = "for", value_name = "TIME", value_parser = values::parse_duration)]
    pub(crate) length: Option<Span>,
    /// Why, for everybody who looks at `cohabit reserve list`
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Stop the jobs that still run there when it begins, and queue them again
    #[arg(long)]
    pub(crate) stop_jobs: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    display: DisplayArguments,
}

// Commands on reservations that exist.
#[derive(Debug, Subcommand)]
pub(crate) enum ReserveVerb {
    /// List the reservations that have not ended
    List(ReservationListArguments),
    /// Cancel a reservation, whether it has begun or not
    Cancel(ReservationCancelArguments),
}

// Arguments of `reserve list`.
#[derive(Debug, Args)]
pub(crate) struct ReservationListArguments {
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    display: DisplayArguments,
}

// Arguments of `reserve cancel`.
#[derive(Debug, Args)]
pub(crate) struct ReservationCancelArguments {
    /// Number of the reservation, as shown by `cohabit reserve list`
    #[arg(value_name = "NUMBER")]
    pub(crate) number: u64,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    display: DisplayArguments,
}

impl ReserveArguments {
    /// The head to ask.
    pub(crate) fn connection(&self) -> &ConnectionArguments {
        match &self.verb {
            Some(ReserveVerb::List(arguments)) => &arguments.connection,
            Some(ReserveVerb::Cancel(arguments)) => &arguments.connection,
            None => &self.connection,
        }
    }

    /// The display flags.
    pub(crate) fn display(&self) -> &DisplayArguments {
        match &self.verb {
            Some(ReserveVerb::List(arguments)) => &arguments.display,
            Some(ReserveVerb::Cancel(arguments)) => &arguments.display,
            None => &self.display,
        }
    }
}
