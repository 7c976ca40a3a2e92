//! Arguments of `export`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::connection::ConnectionArguments;
use super::daemons::LoggingArguments;
use super::tls::TlsArguments;

// Arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Address to serve the metrics on: one that other machines reach needs --tls-cert, --tls-key and
    /// --scrape-token-file
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9470")]
    pub(crate) listen: SocketAddr,
    /// File with the bearer token that scrapers have to send [default: any account of this machine may read]
    #[arg(long, value_name = "FILE")]
    pub(crate) scrape_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) logging: LoggingArguments,
}
