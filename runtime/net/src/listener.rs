//! Where a head listens: every connection is greeted beside the others, and only good ones come out.
//!
//! Bad peers are logged, never returned, and keep nobody out: when there are more than can be greeted at
//! once, the one that has taken longest makes room. Whoever means it has said hello long before.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsAcceptor;

use crate::complaints::Complaints;
use crate::duplex::MESSAGE_LIMIT;
use crate::greeting::Doorkeeper;
use crate::open_files::open_files;
use crate::places::Places;
use crate::{ClientPeer, Identity, LinkError, TokenStore, WorkerPeer, tls};

/// After an error of the system, such as too many open files, it is asked again after this long.
const PAUSE: Duration = Duration::from_millis(50);
/// Files that a head needs for itself: journal, history, logs.
const OWN_FILES: u64 = 256;

/// A head's port. Connections are accepted while somebody waits in [`accept`](Listener::accept).
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    doorkeeper: Arc<Doorkeeper>,
    greetings: JoinSet<Option<Incoming>>,
    /// The greetings that began last, the oldest first; some may have ended.
    begun: VecDeque<AbortHandle>,
    most_greetings: usize,
    /// Nobody is let in before then.
    paused_until: Option<Instant>,
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
    /// How many may be greeted at once; of more, the oldest is dropped.
    pub greetings: usize,
    /// How many may be connected; others are told to come later.
    pub connections: usize,
    /// How many of them by one token.
    pub of_one_token: usize,
    /// How long a peer may take over one message, to send it as well as to take it.
    pub message: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            greeting: Duration::from_secs(10),
            greetings: 512,
            connections: 4_096,
            of_one_token: 1_024,
            message: MESSAGE_LIMIT,
        }
    }
}

impl Limits {
    /// The usual ones, or less where so few files may be open: what is left serves the head itself.
    fn within(files: u64) -> Limits {
        let usual = Limits::default();
        let sockets = usize::try_from(files - OWN_FILES.min(files / 2)).unwrap_or(usize::MAX);
        let greetings = usual.greetings.min(sockets / 4).max(1);
        let connections = usual.connections.min(sockets.saturating_sub(greetings)).max(1);
        Limits { greetings, connections, ..usual }
    }
}

impl Listener {
    /// Listens with the default limits, as far as this process may have so many files open; port 0 takes a
    /// free one.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(
        address: impl ToSocketAddrs + ToString,
        identity: &Identity,
        tokens: TokenStore,
    ) -> Result<Listener, LinkError> {
        Listener::bind_within(address, identity, tokens, Limits::within(open_files())).await
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
            message_limit: limits.message,
            places: Places::new(limits.connections, limits.of_one_token),
            complaints: Complaints::default(),
        };
        Ok(Listener {
            address: socket.local_addr().map_err(refused)?,
            socket,
            doorkeeper: Arc::new(doorkeeper),
            greetings: JoinSet::new(),
            begun: VecDeque::new(),
            most_greetings: limits.greetings,
            paused_until: None,
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
                    Err(made_room) if made_room.is_cancelled() => {}
                    Err(error) => tracing::error!(%error, "a greeting failed; the connection was dropped"),
                },
                dialled = self.socket.accept(), if self.paused_until.is_none() => self.greet(dialled),
                () = pause(self.paused_until) => self.paused_until = None,
            }
        }
    }

    fn greet(&mut self, dialled: io::Result<(TcpStream, SocketAddr)>) {
        match dialled {
            Ok((stream, address)) => {
                self.begun.retain(|greeting| !greeting.is_finished());
                while self.begun.len() >= self.most_greetings {
                    self.drop_oldest();
                    self.doorkeeper.complaints.of_a_crowd(self.most_greetings);
                }
                let greeting = Arc::clone(&self.doorkeeper).greet(stream, address);
                self.begun.push_back(self.greetings.spawn(greeting));
            }
            Err(error) => {
                // Whoever is slow gives back what the system is short of.
                self.drop_oldest();
                self.paused_until = Some(Instant::now() + PAUSE);
                self.doorkeeper.complaints.of_the_system(&error);
            }
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.begun.pop_front() {
            oldest.abort();
        }
    }
}

async fn pause(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_never_use_up_all_files() {
        for files in [0, 1, 16, 80, 1_024, 4_096, 1 << 20, u64::MAX] {
            let Limits { greetings, connections, .. } = Limits::within(files);
            assert!(greetings > 0 && connections > 0, "{files}");
            let sockets = (files / 2).max(files.saturating_sub(OWN_FILES)).max(2);
            assert!((greetings + connections) as u64 <= sockets, "{files}");
        }
        let Limits { greetings, connections, .. } = Limits::within(1 << 16);
        assert_eq!((greetings, connections), (512, 4_096));
    }
}
