//! Why the pages cannot be served.

use std::io;
use std::net::SocketAddr;

/// Why the pages cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address can be reached from other machines.
    #[error(
        "--listen {0} can be reached from other machines, where the pages would travel without encryption \
         and act with your token: listen on 127.0.0.1 and use `ssh -L 7071:127.0.0.1:7071 HOST`"
    )]
    NotLoopback(SocketAddr),
    /// The port is taken, or the system refuses it.
    #[error("cannot listen on {address}: {source}; another port is --listen 127.0.0.1:0, which takes any")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The head does not let this client in.
    #[error(transparent)]
    Head(#[from] cohabit_client::Error),
}
