//! What keeps the exporter from starting.

use std::io;
use std::net::SocketAddr;

use cohabit_http::TlsFileError;

/// Why the exporter cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Other machines would reach it, and it is not closed.
    #[error(
        "--listen {0} can be reached from other machines, which could read names of users and jobs: give --tls-cert \
         FILE, --tls-key FILE and --scrape-token-file FILE, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    TlsFile(#[from] TlsFileError),
    /// The system refuses the address.
    #[error("cannot listen on {address}: {source}; another port is --listen 127.0.0.1:0, which takes any")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}
