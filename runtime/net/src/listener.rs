//! The port of a head: handshakes run side by side, and only accepted peers come out.
//!
//! Rejected peers are logged, never returned, and block nobody: when more connections arrive than may be in
//! the handshake at once, the oldest handshake is dropped. An honest peer has finished long before.

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

use crate::connection_slots::ConnectionLimiter;
use crate::duplex::MESSAGE_LIMIT;
use crate::handshake::HandshakeService;
use crate::open_file_limit::open_file_limit;
use crate::rate_limited_log::RateLimitedLog;
use crate::{HeadIdentity, Incoming, LinkError, TokenStore, tls};

/// Pause after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);
/// Files that a head needs for itself: journal, history, logs.
const OWN_FILES: u64 = 256;

/// The port of a head. It accepts connections while a caller waits in [`accept`](Listener::accept).
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    handshake_service: Arc<HandshakeService>,
    handshakes: JoinSet<Option<Incoming>>,
    /// The latest handshakes, the oldest first; some may have ended.
    begun: VecDeque<AbortHandle>,
    max_handshakes: usize,
    /// No connection is accepted before then.
    paused_until: Option<Instant>,
}

/// Limits of a listener.
#[derive(Debug, Clone)]
pub struct ListenerLimits {
    /// How long TLS and hello may take together.
    pub handshake_timeout: Duration,
    /// How many handshakes may run at once; of more, the oldest is dropped.
    pub max_handshakes: usize,
    /// How many peers may be connected; others are refused for now.
    pub connections: usize,
    /// How many of them with one token.
    pub connections_per_token: usize,
    /// How long a peer may take over one message, to send it as well as to take it.
    pub message: Duration,
}

impl Default for ListenerLimits {
    fn default() -> ListenerLimits {
        ListenerLimits {
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 512,
            connections: 4_096,
            connections_per_token: 1_024,
            message: MESSAGE_LIMIT,
        }
    }
}

impl ListenerLimits {
    /// The default limits, or lower ones where few files may be open: the head needs some itself.
    fn within(files: u64) -> ListenerLimits {
        let usual = ListenerLimits::default();
        let sockets = usize::try_from(files - OWN_FILES.min(files / 2)).unwrap_or(usize::MAX);
        let max_handshakes = usual.max_handshakes.min(sockets / 4).max(1);
        let connections = usual.connections.min(sockets.saturating_sub(max_handshakes)).max(1);
        ListenerLimits { max_handshakes, connections, ..usual }
    }
}

impl Listener {
    /// Listens with the default limits, or lower ones where this process may open few files. Port 0 takes a
    /// free port.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(
        address: impl ToSocketAddrs + ToString,
        identity: &HeadIdentity,
        tokens: TokenStore,
    ) -> Result<Listener, LinkError> {
        Listener::bind_within(address, identity, tokens, ListenerLimits::within(open_file_limit())).await
    }

    /// Listens within these limits.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind_within(
        address: impl ToSocketAddrs + ToString,
        identity: &HeadIdentity,
        tokens: TokenStore,
        limits: ListenerLimits,
    ) -> Result<Listener, LinkError> {
        let name = address.to_string();
        let refused = |source| LinkError::Bind { address: name.clone(), source };
        let tls = tls::server_config(identity.chain(), identity.key())
            .map_err(io::Error::other)
            .map_err(refused)?;
        let socket = TcpListener::bind(address).await.map_err(refused)?;
        let handshake_service = HandshakeService {
            tls: TlsAcceptor::from(Arc::new(tls)),
            cluster: identity.fingerprint(),
            tokens,
            time_limit: limits.handshake_timeout,
            message_limit: limits.message,
            connection_limiter: ConnectionLimiter::new(limits.connections, limits.connections_per_token),
            rejections: RateLimitedLog::default(),
        };
        Ok(Listener {
            address: socket.local_addr().map_err(refused)?,
            socket,
            handshake_service: Arc::new(handshake_service),
            handshakes: JoinSet::new(),
            begun: VecDeque::new(),
            max_handshakes: limits.max_handshakes,
            paused_until: None,
        })
    }

    /// The address that it listens on, with the actual port.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The next accepted peer. Cancel-safe: dropping the call loses no peer.
    pub async fn accept(&mut self) -> Incoming {
        loop {
            tokio::select! {
                Some(finished) = self.handshakes.join_next() => match finished {
                    Ok(Some(peer)) => return peer,
                    Ok(None) => {}
                    Err(made_room) if made_room.is_cancelled() => {}
                    Err(error) => tracing::error!(%error, "a handshake failed; the connection was dropped"),
                },
                dialled = self.socket.accept(), if self.paused_until.is_none() => self.run_handshake(dialled),
                () = pause(self.paused_until) => self.paused_until = None,
            }
        }
    }

    fn run_handshake(&mut self, dialled: io::Result<(TcpStream, SocketAddr)>) {
        match dialled {
            Ok((stream, address)) => {
                self.begun.retain(|handshake| !handshake.is_finished());
                while self.begun.len() >= self.max_handshakes {
                    self.drop_oldest();
                    self.handshake_service.rejections.log_overload(self.max_handshakes);
                }
                let handshake = Arc::clone(&self.handshake_service).run_handshake(stream, address);
                self.begun.push_back(self.handshakes.spawn(handshake));
            }
            Err(error) => {
                // The slowest handshake gives its socket back to the system.
                self.drop_oldest();
                self.paused_until = Some(Instant::now() + PAUSE);
                self.handshake_service.rejections.log_accept_error(&error);
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
            let ListenerLimits { max_handshakes, connections, .. } = ListenerLimits::within(files);
            assert!(max_handshakes > 0 && connections > 0, "{files}");
            let sockets = (files / 2).max(files.saturating_sub(OWN_FILES)).max(2);
            assert!((max_handshakes + connections) as u64 <= sockets, "{files}");
        }
        let ListenerLimits { max_handshakes, connections, .. } = ListenerLimits::within(1 << 16);
        assert_eq!((max_handshakes, connections), (512, 4_096));
    }
}
