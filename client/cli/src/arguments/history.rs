//! Arguments of `last` and `history`.

use clap::Args;
use cohabit_client::types::Span;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use crate::values;

// Arguments of `last`.
#[derive(Debug, Args)]
pub(crate) struct LastArguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Show at most this many jobs, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Show jobs that were submitted within this time: 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = values::parse_duration)]
    pub(crate) since: Option<Span>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}
