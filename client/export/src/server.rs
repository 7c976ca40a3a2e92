//! Serves the metrics on this machine. Prometheus asks every few seconds, so connections are few.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cohabit_client::{Client, Error};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::ExportError;
use crate::exposition::TextForm;
use crate::scrape::Scraper;

/// Connections at once; others are closed.
const MOST_CONNECTIONS: usize = 32;
/// How long a request may take to arrive, and a connection may be idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(90);
/// The largest head of a request.
const LARGEST_HEAD: usize = 16 * 1_024;
/// A connection ends after this time, and Prometheus opens another one.
const LONGEST_CONNECTION: Duration = Duration::from_secs(3_600);
/// The pause after a connection could not be accepted, because there are no file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How the metrics are served.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The address of this machine to listen on; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// What scrapers have to send as bearer token; without one, every account of this machine may read the
    /// metrics.
    pub token: Option<String>,
}

/// The server of the metrics.
#[derive(Debug)]
pub struct ExportServer {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<ExportState>,
}

#[derive(Debug)]
struct ExportState {
    scraper: Scraper,
    token: Option<String>,
}

impl ExportServer {
    /// Listens. Asks nothing of the head yet, which may not be there.
    ///
    /// # Errors
    /// [`ExportError::NotLoopback`] for an address that other machines reach, and those of the system.
    pub async fn bind(options: ExportOptions, client: Client) -> Result<ExportServer, ExportError> {
        let ExportOptions { listen, token } = options;
        if !listen.ip().is_loopback() {
            return Err(ExportError::NotLoopback(listen));
        }
        let listening = |source| ExportError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let state = Arc::new(ExportState { scraper: Scraper::new(client), token });
        Ok(ExportServer { listener, address, state })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the future is ready; connections are then closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown => {}
            () = accept(self.listener, router(self.state)) => {}
        }
    }
}

fn router(state: Arc<ExportState>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/", get(|| async { "The metrics of this Cohabit cluster are at /metrics.\n" }))
        .layer(from_fn_with_state(Arc::clone(&state), check))
        .with_state(state)
}

/// A page of another site must not read the metrics through a name that it points at this machine.
async fn check(State(state): State<Arc<ExportState>>, request: Request, next: Next) -> Response {
    if !names_loopback(request.headers()) {
        let why = "The request is for another host: ask for 127.0.0.1 or localhost.\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    if !is_allowed(state.token.as_deref(), request.headers()) {
        let why =
            "The request lacks the token of --scrape-token-file: send it as `Authorization: Bearer TOKEN`.\n";
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], why).into_response();
    }
    next.run(request).await
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    address.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}

fn is_allowed(token: Option<&str>, headers: &HeaderMap) -> bool {
    let Some(token) = token else { return true };
    let sent = headers.get(AUTHORIZATION).map(|it| it.as_bytes()).and_then(|it| it.strip_prefix(b"Bearer "));
    sent.is_some_and(|sent| sent.ct_eq(token.as_bytes()).into())
}

async fn metrics(State(state): State<Arc<ExportState>>, headers: HeaderMap) -> Response {
    let form = TextForm::for_accept(headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()));
    match state.scraper.scrape(form).await {
        Ok(text) => {
            let headers = [(CONTENT_TYPE, form.content_type()), (CACHE_CONTROL, "no-store")];
            (headers, text.to_string()).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

/// Prometheus shows the target as down.
fn unavailable(error: &Error) -> Response {
    tracing::warn!(%error, "the head does not answer a scrape");
    (StatusCode::SERVICE_UNAVAILABLE, format!("The head does not answer: {error}\n")).into_response()
}

async fn accept(listener: TcpListener, router: Router) {
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
        let router = router.clone();
        connections.spawn(async move {
            serve_connection(stream, router).await;
            drop(place);
        });
    }
}

async fn serve_connection(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Ok(Err(error)) = timeout(LONGEST_CONNECTION, pin!(connection)).await {
        tracing::debug!(%error, "a connection ended");
    }
}
