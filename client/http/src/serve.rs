//! Connections and their limits.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::tls::TlsIdentity;

/// The largest head of a request.
const LARGEST_HEAD: usize = 16 * 1_024;
const MOST_HEADERS: usize = 64;
/// A connection whose time is over has to take its last answer within this.
const LAST_ANSWER: Duration = Duration::from_secs(60);
/// The pause after a connection could not be accepted, because there are no file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// Connections at once; others are closed.
    pub connections: usize,
    /// How long a handshake or a request may take to arrive, and a connection may be idle.
    pub headers_within: Duration,
    /// A connection ends after this time.
    pub longest_connection: Duration,
}

/// Serves for ever; connections are closed when the future is dropped. With an identity, only over TLS.
pub async fn serve(listener: TcpListener, router: Router, tls: Option<Arc<TlsIdentity>>, limits: HttpLimits) {
    let places = Arc::new(Semaphore::new(limits.connections));
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
        let (router, tls) = (router.clone(), tls.clone());
        connections.spawn(async move {
            serve_stream(stream, router, tls.as_deref(), limits).await;
            drop(place);
        });
    }
}

async fn serve_stream(stream: TcpStream, router: Router, tls: Option<&TlsIdentity>, limits: HttpLimits) {
    let Some(tls) = tls else {
        return serve_connection(TokioIo::new(stream), router, limits).await;
    };
    match timeout(limits.headers_within, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve_connection(TokioIo::new(stream), router, limits).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection did not begin with TLS"),
        Err(_) => tracing::debug!("a connection sent no TLS handshake in time"),
    }
}

async fn serve_connection(stream: impl Read + Write + Unpin, router: Router, limits: HttpLimits) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers_within)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(stream, TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    if let Ok(result) = timeout(limits.longest_connection, connection.as_mut()).await {
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
