//! Connections that have not said whose they are: few at a time, each for a short time.

use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many connections may be open at one socket that have not said who they are.
const MOST_STRANGERS: usize = 64;

/// How long one may take for each step of saying it.
pub(super) const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after the system refused a connection, as when no more files may be open.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Room for strangers at one socket.
#[derive(Debug, Clone)]
pub(super) struct StrangerLimit(Arc<Semaphore>);

/// A place of one stranger; dropping it makes room for another one.
#[derive(Debug)]
pub(crate) struct StrangerPermit(#[expect(dead_code, reason = "dropped")] OwnedSemaphorePermit);

/// A connection from another node for this process. Whoever takes it asks for the key of the application.
#[derive(Debug)]
pub(crate) struct Stranger {
    /// Of no runtime: another thread may take it.
    stream: net::TcpStream,
    address: SocketAddr,
    permit: StrangerPermit,
}

impl StrangerLimit {
    pub(super) fn new() -> StrangerLimit {
        StrangerLimit(Arc::new(Semaphore::new(MOST_STRANGERS)))
    }

    /// Waits for room.
    pub(super) async fn room(&self) -> StrangerPermit {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        StrangerPermit(permit.expect("the semaphore is never closed"))
    }
}

impl Stranger {
    /// # Errors
    /// If it is no connection of a network, or broken already.
    pub(super) fn new(stream: net::TcpStream, permit: StrangerPermit) -> io::Result<Stranger> {
        stream.set_nonblocking(true)?;
        Ok(Stranger { address: stream.peer_addr()?, stream, permit })
    }

    /// The connection for the present runtime, and the place, which is kept until it is known whose it is.
    ///
    /// # Errors
    /// If the runtime cannot take it.
    pub(super) fn into_parts(self) -> io::Result<(TcpStream, StrangerPermit)> {
        Ok((TcpStream::from_std(self.stream)?, self.permit))
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}
