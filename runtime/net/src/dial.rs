//! The client's and worker's side of a handshake: TCP, TLS pinned by the token, the hello, and then the
//! services.
//!
//! One attempt, with time limits. A caller tries again with a [`Backoff`](crate::Backoff) as long as
//! [`LinkError::kind`] says that this may help.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cohabit_wire::codec::MAX_FRAME;
use cohabit_wire::hello::{ConnectionPurpose, Hello, HelloAnswer, HelloError, decode_answer, encode_hello};
use cohabit_wire::message::NoMessage;
use cohabit_wire::{
    ClientServiceClient, ClientServiceResponse, Fingerprint, HeadServiceClient, HelloAccepted,
    ProtocolVersion, WorkerHello, WorkerService, WorkerServiceRequest, v4,
};
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tarpc::client::{Config, NewClient};
use tarpc::context::Context;
use tarpc::server::Serve;
use tarpc::{RequestName, Response, ServerError};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::duplex::{CallTransport, Duplex, MESSAGE_LIMIT, duplex};
use crate::frames::{Frames, frames};
use crate::link::{self, LinkEndFuture};
use crate::worker_reports::WorkerReports;
use crate::{Endpoint, LinkError, socket, tls};

/// The time limit of the connection, of the TLS handshake, and of the answer to the hello.
const LIMIT: Duration = Duration::from_secs(10);

/// A worker's side of its link. It ends when the last clone of `head` is dropped.
pub struct WorkerLink {
    /// Calls to the head.
    pub head: WorkerReports,
    /// The head's answer to the hello.
    pub accepted: HelloAccepted,
    /// Resolves when the link has ended.
    pub closed: LinkEndFuture,
}

/// Dials as a client. The link ends when the last clone of the returned client is dropped.
///
/// # Errors
/// Says why there is no link, and what to do.
pub async fn connect_client(endpoint: &Endpoint) -> Result<(ClientServiceClient, HelloAccepted), LinkError> {
    let (frames, accepted) = Dial(endpoint).link(ProtocolVersion::CURRENT, ConnectionPurpose::Client).await?;
    let (ports, pump): (Duplex<NoMessage, ClientServiceResponse>, _) = duplex(frames, None, MESSAGE_LIMIT);
    let NewClient { client, dispatch } = ClientServiceClient::new(Config::default(), ports.called);
    tokio::spawn(link::run(pump, dispatch, pending(), pending()));
    Ok((client, accepted))
}

/// Dials as a worker, and serves the head's orders over the same connection.
///
/// A head that speaks only the protocol before this one is greeted and served in that one, so that workers
/// may be upgraded before their head.
///
/// # Errors
/// Says why there is no link, and what to do.
pub async fn connect_worker<S: WorkerService + Clone + Send + 'static>(
    endpoint: &Endpoint,
    hello: WorkerHello,
    service: S,
) -> Result<WorkerLink, LinkError> {
    let purpose = || ConnectionPurpose::Worker(Box::new(hello.clone()));
    match Dial(endpoint).link(ProtocolVersion::CURRENT, purpose()).await {
        Err(LinkError::OtherVersion { theirs, .. }) if theirs == ProtocolVersion::OLDEST.number() => {
            let linked = Dial(endpoint).link(ProtocolVersion::OLDEST, purpose()).await?;
            let service = v4::WorkerServiceAdapter(service);
            let handler = move |context, request: v4::WorkerServiceRequest| {
                let serve = v4::WorkerService::serve(service.clone());
                link::catch_handler_panic(serve.serve(context, request))
            };
            Ok(WorkerLink::start(linked, handler, |calls| {
                let NewClient { client, dispatch } = v4::HeadServiceClient::new(Config::default(), calls);
                (client.into(), dispatch)
            }))
        }
        linked => {
            let handler = move |context, request: WorkerServiceRequest| {
                link::catch_handler_panic(service.clone().serve().serve(context, request))
            };
            Ok(WorkerLink::start(linked?, handler, |calls| {
                let NewClient { client, dispatch } = HeadServiceClient::new(Config::default(), calls);
                (client.into(), dispatch)
            }))
        }
    }
}

impl WorkerLink {
    /// Starts both services; `handler` takes the calls of the head, and `client` makes those to it.
    fn start<Request, Answer, Handler, Called, Dispatch>(
        (frames, accepted): (Frames<TlsStream<TcpStream>>, HelloAccepted),
        handler: Handler,
        client: impl FnOnce(CallTransport<Response<Called>>) -> (WorkerReports, Dispatch),
    ) -> WorkerLink
    where
        Request: DeserializeOwned + RequestName + Send + 'static,
        Answer: Serialize + Send + 'static,
        Handler:
            Fn(Context, Request) -> BoxFuture<'static, Result<Answer, ServerError>> + Clone + Send + 'static,
        Called: DeserializeOwned + Send + 'static,
        Dispatch: Future<Output: Send> + Send + 'static,
    {
        let (ports, pump): (Duplex<Request, Called>, _) = duplex(frames, None, MESSAGE_LIMIT);
        let (head, dispatch) = client(ports.called);
        let serves = link::serve(ports.served, handler);
        let closed = link::spawn(link::run(pump, dispatch, serves, pending()));
        WorkerLink { head, accepted, closed }
    }
}

/// One attempt to reach a head.
struct Dial<'a>(&'a Endpoint);

impl Dial<'_> {
    async fn link(
        &self,
        version: ProtocolVersion,
        purpose: ConnectionPurpose,
    ) -> Result<(Frames<TlsStream<TcpStream>>, HelloAccepted), LinkError> {
        self.check_address()?;
        let stream = self.secure(self.reach().await?).await?;
        let mut frames = frames(stream, MAX_FRAME);
        let hello = Hello { secret: self.0.token.secret(), purpose };
        let frame = encode_hello(version, &hello).map_err(|error| self.broken(error))?;
        let answer = timeout(LIMIT, async {
            frames.send(frame).await?;
            frames.next().await.unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()))
        });
        let answer = answer.await.map_err(|_late| self.broken("it did not answer the hello"))?;
        let answer = answer
            .map_err(|error| self.broken(format!("it closed the connection during the hello: {error}")))?;
        Ok((frames, self.read_answer(&answer, version)?))
    }

    fn check_address(&self) -> Result<(), LinkError> {
        let parts = self.0.address.rsplit_once(':');
        match parts.map(|(host, port)| (host.is_empty(), port.parse::<u16>())) {
            Some((false, Ok(_))) => Ok(()),
            None | Some((true, _) | (_, Err(_))) => Err(LinkError::BadAddress { address: self.address() }),
        }
    }

    async fn reach(&self) -> Result<TcpStream, LinkError> {
        let connected = timeout(LIMIT, TcpStream::connect(&self.0.address)).await;
        connected
            .unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
            .and_then(|stream| socket::set_up(&stream).map(|()| stream))
            .map_err(|source| LinkError::Unreachable { address: self.address(), source })
    }

    async fn secure(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, LinkError> {
        let config = tls::client_config(self.pin()).map_err(|error| self.broken(error))?;
        let handshake = TlsConnector::from(Arc::new(config)).connect(tls::head_name(), stream);
        let shaken = timeout(LIMIT, handshake)
            .await
            .map_err(|_late| self.broken("it did not answer the TLS handshake"))?;
        shaken.map_err(|error| self.insecure(&error))
    }

    fn insecure(&self, error: &io::Error) -> LinkError {
        let address = self.address();
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            None => self.broken(format!("it closed the connection during the TLS handshake: {error}")),
            Some(error) if tls::is_pin_mismatch(error) => {
                LinkError::WrongCluster { address, expected: self.pin() }
            }
            Some(error) if tls::is_bad_certificate(error) => {
                LinkError::BadCertificate { address, reason: error.to_string() }
            }
            Some(error) => LinkError::NotCohabit { address, reason: error.to_string() },
        }
    }

    fn read_answer(&self, answer: &[u8], version: ProtocolVersion) -> Result<HelloAccepted, LinkError> {
        let address = self.address();
        match decode_answer(answer, version) {
            Ok(HelloAnswer::Accepted(accepted)) => Ok(accepted),
            Ok(HelloAnswer::Refused { code, message }) => Err(LinkError::Refused { address, code, message }),
            Err(HelloError::OtherVersion { theirs, build }) => {
                Err(LinkError::OtherVersion { address, theirs, build })
            }
            Err(error @ (HelloError::NotCohabit | HelloError::Undecodable(_))) => {
                Err(LinkError::NotCohabit { address, reason: error.to_string() })
            }
        }
    }

    fn broken(&self, reason: impl ToString) -> LinkError {
        LinkError::Broken { address: self.address(), reason: reason.to_string() }
    }

    fn address(&self) -> String {
        self.0.address.clone()
    }

    const fn pin(&self) -> Fingerprint {
        self.0.token.fingerprint()
    }
}
