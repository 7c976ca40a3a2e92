//! What keeps the exporter from starting.

use std::io;
use std::net::SocketAddr;

/// Why the exporter cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Other machines would reach it.
    #[error(
        "--listen {0} is no address of this machine alone: user names and jobs would be there for anybody to read. Listen on \
         127.0.0.1, and run Prometheus or a proxy with TLS here"
    )]
    NotLoopback(SocketAddr),
    /// The system refuses the address.
    #[error("cannot listen on {address}: {source}. Choose another one with --listen, such as 127.0.0.1:0")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}
