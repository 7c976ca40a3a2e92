//! Arguments of `notify`.

use std::path::PathBuf;

use clap::Args;

use super::connection::ConnectionArguments;
use super::daemons::LoggingArguments;

// Arguments of `notify`.
#[derive(Debug, Args)]
pub(crate) struct NotifyArguments {
    /// File that names the channels and what goes where
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: PathBuf,
    /// Only check the file and the files with secrets that it names
    #[arg(long)]
    pub(crate) check: bool,
    /// Only send a test message over this channel
    #[arg(long, value_name = "CHANNEL", conflicts_with = "check")]
    pub(crate) test: Option<String>,
    /// User for whom the test message is, where the address of the channel has the user's name in it
    #[arg(long, value_name = "NAME", requires = "test")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) logging: LoggingArguments,
}
