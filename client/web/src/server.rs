//! Connections and their limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_client::Client;
use cohabit_client::types::{Principal, Role};
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::WebError;
use crate::cluster::upstream::follow;
use crate::routes::router;
use crate::state::WebState;
use crate::tls::{TlsFiles, TlsIdentity, host_text};

/// Connections at once; others are closed. A browser opens six.
const MOST_CONNECTIONS: usize = 256;
/// How long a request may take to arrive, and a connection may be idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// The largest head of a request.
const LARGEST_HEAD: usize = 16 * 1_024;
const MOST_HEADERS: usize = 64;
/// A connection ends after this time, and its last answer has to be taken within this one.
const LONGEST_CONNECTION: Duration = Duration::from_secs(600);
const LAST_ANSWER: Duration = Duration::from_secs(60);
/// The pause after a connection could not be accepted, because there are no file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
            Some(files) => Some(read_identity(files).await?),
            None => None,
        };
        let by = client.accepted().await?.by;
        // Nothing listens before it is known who is shown.
        check_reach(listen, &by)?;
        let listening = |source| WebError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
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
            () = accept(listener, state) => {}
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

async fn read_identity(files: TlsFiles) -> Result<TlsIdentity, WebError> {
    let (flag, file) = ("--tls-cert", files.certificate.clone());
    let read = spawn_blocking(move || TlsIdentity::read(&files)).await;
    read.unwrap_or_else(|error| Err(WebError::TlsFile { flag, file, why: error.to_string() }))
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

async fn accept(listener: TcpListener, state: Arc<WebState>) {
    let router = router(Arc::clone(&state));
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::debug!("a connection was closed: there are too many");
            continue;
        };
        let (router, state) = (router.clone(), Arc::clone(&state));
        connections.spawn(async move {
            serve_stream(stream, &state, router).await;
            drop(place);
        });
    }
}

async fn serve_stream(stream: TcpStream, state: &WebState, router: axum::Router) {
    let Some(tls) = &state.tls else {
        return serve_connection(TokioIo::new(stream), router).await;
    };
    match timeout(HEADERS_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve_connection(TokioIo::new(stream), router).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection did not begin with TLS"),
        Err(_) => tracing::debug!("a connection sent no TLS handshake in time"),
    }
}

async fn serve_connection(stream: impl Read + Write + Unpin, router: axum::Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(stream, TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    if let Ok(result) = timeout(LONGEST_CONNECTION, connection.as_mut()).await {
        trace_end(result);
        return;
    }
    connection.as_mut().graceful_shutdown();
    if let Ok(result) = timeout(LAST_ANSWER, connection).await {
        trace_end(result);
    }
}

fn trace_end(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended");
    }
}
