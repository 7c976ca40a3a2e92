//! Where a head listens: every connection is greeted beside the others, and only good ones come out.
//!
//! Bad peers are logged, never returned, and cannot keep others out for longer than the time limit of a
//! greeting.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::greeting::Doorkeeper;
use crate::{ClientPeer, Identity, LinkError, TokenStore, WorkerPeer, tls};

/// After an error of the system, such as too many open files, it is asked again after this long.
const PAUSE: Duration = Duration::from_millis(50);

/// A head's port. Connections are accepted while somebody waits in [`accept`](Listener::accept).
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    doorkeeper: Arc<Doorkeeper>,
    greetings: JoinSet<Option<Incoming>>,
    most_greetings: usize,
}

/// Whom a head lets in.
pub enum Incoming {
    /// One who asks.
    Client(ClientPeer),
    /// One who runs ranks.
    Worker(WorkerPeer),
}

/// What a listener puts up with.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long TLS and hello may take together.
    pub greeting: Duration,
    /// How many may be greeted at once; others wait in the system's queue.
    pub greetings: usize,
    /// How many may be connected; others are told to come later.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { greeting: Duration::from_secs(10), greetings: 128, connections: 4_096 }
    }
}

impl Listener {
    /// Listens with the default limits; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(
        address: impl ToSocketAddrs + ToString,
        identity: &Identity,
        tokens: TokenStore,
    ) -> Result<Listener, LinkError> {
        Listener::bind_within(address, identity, tokens, Limits::default()).await
    }

    /// Listens within these limits.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind_within(
        address: impl ToSocketAddrs + ToString,
        identity: &Identity,
        tokens: TokenStore,
        limits: Limits,
    ) -> Result<Listener, LinkError> {
        let name = address.to_string();
        let refused = |source| LinkError::Bind { address: name.clone(), source };
        let tls = tls::server_config(identity).map_err(io::Error::other).map_err(refused)?;
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let doorkeeper = Doorkeeper {
            tls: TlsAcceptor::from(Arc::new(tls)),
            cluster: identity.fingerprint(),
            tokens,
            time_limit: limits.greeting,
            places: Arc::new(Semaphore::new(limits.connections)),
        };
        Ok(Listener {
            address: socket.local_addr().map_err(refused)?,
            socket,
            doorkeeper: Arc::new(doorkeeper),
            greetings: JoinSet::new(),
            most_greetings: limits.greetings,
        })
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The next peer whose token is good. May be dropped and called again without losing anybody.
    pub async fn accept(&mut self) -> Incoming {
        loop {
            tokio::select! {
                Some(greeted) = self.greetings.join_next() => match greeted {
                    Ok(Some(peer)) => return peer,
                    Ok(None) => {}
                    Err(error) => tracing::error!(%error, "a greeting failed; the connection was dropped"),
                },
                dialled = self.socket.accept(), if self.greetings.len() < self.most_greetings => {
                    self.greet(dialled).await;
                }
            }
        }
    }

    async fn greet(&mut self, dialled: io::Result<(TcpStream, SocketAddr)>) {
        match dialled {
            Ok((stream, address)) => {
                self.greetings.spawn(Arc::clone(&self.doorkeeper).greet(stream, address));
            }
            Err(error) => {
                tracing::warn!(%error, "the system did not hand over a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
