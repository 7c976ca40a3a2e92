//! Serves the metrics. Prometheus asks every few seconds, so connections are few.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cohabit_client::{Client, Error};
use cohabit_http::{HttpLimits, TlsFiles, TlsIdentity, host_of_this_machine, serve};
use cohabit_settings::FileSecret;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

use crate::ExportError;
use crate::exposition::TextForm;
use crate::scrape::Scraper;

/// Prometheus keeps its connection, and scrapes once a minute by default.
const LIMITS: HttpLimits = HttpLimits {
    connections: 32,
    headers_within: Duration::from_secs(90),
    longest_connection: Duration::from_secs(3_600),
};

/// How the metrics are served.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The address to listen on; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// What scrapers have to send as bearer token; without one, every account of this machine may read the
    /// metrics.
    pub token: Option<FileSecret>,
    /// The certificate of an address that other machines reach; without it, metrics travel as plain HTTP.
    pub tls: Option<TlsFiles>,
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
    token: Option<FileSecret>,
    tls: Option<Arc<TlsIdentity>>,
}

impl ExportServer {
    /// Listens. Asks nothing of the head yet, which may not be there.
    ///
    /// # Errors
    /// [`ExportError::Open`] for an address that other machines reach, without a certificate or a token;
    /// those of the files of the certificate, and of the system.
    pub async fn bind(options: ExportOptions, client: Client) -> Result<ExportServer, ExportError> {
        let ExportOptions { listen, token, tls } = options;
        if !listen.ip().is_loopback() && (tls.is_none() || token.is_none()) {
            return Err(ExportError::Open(listen));
        }
        let tls = match tls {
            Some(files) => Some(Arc::new(TlsIdentity::load(files).await?)),
            None => None,
        };
        let (listener, address) = cohabit_http::bind(listen).await?;
        let state = Arc::new(ExportState { scraper: Scraper::new(client), token, tls });
        Ok(ExportServer { listener, address, state })
    }

    /// Where the metrics are.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.state.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/metrics", self.address)
    }

    /// Serves until the future is ready; connections are then closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let tls = self.state.tls.clone();
        tokio::select! {
            () = shutdown => {}
            () = serve(self.listener, router(self.state), tls, LIMITS) => {}
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
    if host_of_this_machine(request.headers(), state.tls.as_deref()).is_none() {
        let why =
            "The request is for another host: ask for 127.0.0.1, localhost, or a name in the certificate.\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    if !is_allowed(state.token.as_ref(), request.headers()) {
        let why =
            "The request lacks the token of --scrape-token-file: send it as `Authorization: Bearer TOKEN`.\n";
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], why).into_response();
    }
    next.run(request).await
}

fn is_allowed(token: Option<&FileSecret>, headers: &HeaderMap) -> bool {
    let Some(token) = token else { return true };
    let sent = headers.get(AUTHORIZATION).map(|it| it.as_bytes()).and_then(|it| it.strip_prefix(b"Bearer "));
    sent.is_some_and(|sent| sent.ct_eq(token.reveal().as_bytes()).into())
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
