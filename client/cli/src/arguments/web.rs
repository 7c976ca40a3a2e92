//! Arguments of `web`.

use std::net::SocketAddr;

use clap::Args;

use super::connection::ConnectionArguments;
use super::tls::TlsArguments;

// Arguments of `web`.
#[derive(Debug, Args)]
pub(crate) struct WebArguments {
    /// Address to serve the pages on: only browsers on this machine, or at the end of an SSH tunnel, can
    /// reach them; one that other machines reach needs a token with the role viewer, --tls-cert and --tls-key
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7071")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}
