//! Takes the address to listen on.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// The port is taken, or the system refuses it.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; another port is --listen 127.0.0.1:0, which takes any")]
pub struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

/// Listens. Returns the address with the port that the system chose for port 0.
///
/// # Errors
/// Those of the system.
pub async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ListenError> {
    let failed = |source| ListenError { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}
