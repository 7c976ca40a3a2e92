//! Arguments of `web`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::connection::ConnectionArguments;

// Arguments of `web`.
#[derive(Debug, Args)]
pub(crate) struct WebArguments {
    /// Address to serve the pages on: only browsers on this machine, or at the end of an SSH tunnel, can
    /// reach them; one that other machines reach needs a token with the role viewer, --tls-cert and --tls-key
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7071")]
    pub(crate) listen: SocketAddr,
    /// Certificate of the pages, as PEM, with those between it and its authority: they are served by HTTPS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, as PEM; nobody else may read the file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}
