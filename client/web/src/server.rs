//! Where the pages are served, and to whom.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_client::Client;
use cohabit_client::types::{Principal, Role};
use cohabit_http::{HttpLimits, TlsFiles, TlsIdentity, host_text, serve};
use tokio::net::TcpListener;

use crate::WebError;
use crate::cluster::upstream::follow;
use crate::routes::router;
use crate::state::WebState;

/// A browser opens six connections.
const LIMITS: HttpLimits = HttpLimits {
    connections: 256,
    headers_within: Duration::from_secs(15),
    longest_connection: Duration::from_secs(600),
};

/// How the pages are served.
#[derive(Debug, Clone)]
pub struct WebOptions {
    /// The address of this machine to listen on; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The certificate of an address that other machines reach; without it, pages travel as plain HTTP.
    pub tls: Option<TlsFiles>,
}

impl Default for WebOptions {
    /// Port 7071, for this machine only.
    fn default() -> WebOptions {
        WebOptions { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7_071)), tls: None }
    }
}

/// The server of the pages.
#[derive(Debug)]
pub struct WebServer {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<WebState>,
}

/// Makes addresses that open the pages, each once.
#[derive(Debug, Clone)]
pub struct EntryAddresses {
    address: SocketAddr,
    state: Arc<WebState>,
}

impl WebServer {
    /// Listens, with the rights of this client's token.
    ///
    /// # Errors
    /// [`WebError::WithoutTls`] and [`WebError::NotViewer`] for an address that other machines reach; those
    /// of the files of the certificate, of the system, and of a head that does not answer or does not let
    /// the client in.
    pub async fn bind(options: WebOptions, client: Client) -> Result<WebServer, WebError> {
        let WebOptions { listen, tls } = options;
        if !listen.ip().is_loopback() && tls.is_none() {
            return Err(WebError::WithoutTls(listen));
        }
        let tls = match tls {
            Some(files) => Some(Arc::new(TlsIdentity::load(files).await?)),
            None => None,
        };
        let by = client.accepted().await?.by;
        // Nothing listens before it is known who is shown.
        check_reach(listen, &by)?;
        let (listener, address) = cohabit_http::bind(listen).await?;
        // A page says at once that the head is away, and asks again by itself.
        let client = client.with_retry_timeout(Duration::ZERO);
        let state = Arc::new(WebState::new(client, by, address.port(), tls));
        Ok(WebServer { listener, address, state })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes addresses that open the pages.
    #[must_use]
    pub fn entry_addresses(&self) -> EntryAddresses {
        EntryAddresses { address: self.address, state: Arc::clone(&self.state) }
    }

    /// Serves until the future is ready; connections are then closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let WebServer { listener, state, .. } = self;
        let upstream = follow(state.client.clone(), Arc::clone(&state.cluster), Arc::clone(&state.viewers));
        tokio::select! {
            () = shutdown => {}
            () = upstream => {}
            () = serve(listener, router(Arc::clone(&state)), state.tls.clone(), LIMITS) => {}
        }
    }
}

impl EntryAddresses {
    /// A new address. It is good once, for a minute.
    #[must_use]
    pub fn issue(&self) -> String {
        let key = self.state.entry.issue_key(Instant::now());
        let (ip, port) = (self.address.ip(), self.address.port());
        let host = self.state.tls.as_ref().map_or_else(|| host_text(ip), |tls| tls.public_host(ip));
        format!("{}://{host}:{port}/enter?key={key}", self.state.scheme())
    }
}

/// Other machines reach only what a viewer may do.
fn check_reach(listen: SocketAddr, by: &Principal) -> Result<(), WebError> {
    let may_be_reached = match by.role {
        Role::Viewer => true,
        Role::Worker | Role::User | Role::Admin => listen.ip().is_loopback(),
    };
    match may_be_reached {
        true => Ok(()),
        false => Err(WebError::NotViewer { address: listen, user: by.user.clone(), role: by.role }),
    }
}
