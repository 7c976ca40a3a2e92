//! What keeps the exporter from starting.

use std::net::SocketAddr;

use cohabit_http::{ListenError, TlsFileError};

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
    /// The port is taken, or the system refuses it.
    #[error(transparent)]
    Listen(#[from] ListenError),
}
