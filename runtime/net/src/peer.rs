//! Peers that a head has accepted: it welcomes each when it is ready, in the protocol of its hello, and their
//! links end with their tokens.

use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use cohabit_types::{AttemptId, Inventory, Principal, WorkerKey};
use cohabit_wire::hello::{HelloAnswer, encode_answer};
use cohabit_wire::message::NoMessage;
use cohabit_wire::v4::{self, ClientService as _, ClientServiceAdapter};
use cohabit_wire::{
    BUILD, ClientService, ClientServiceRequest, Fingerprint, HeadService, HeadServiceRequest, HelloAccepted,
    HelloRefusalCode, ProtocolVersion, Secret, WorkerHello, WorkerServiceClient,
};
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tarpc::client::{Config, NewClient};
use tarpc::context::Context;
use tarpc::server::Serve;
use tarpc::{RequestName, Response, ServerError};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::TokenStore;
use crate::connection_slots::ConnectionSlot;
use crate::duplex::{CallTransport, Duplex, duplex};
use crate::frames::Frames;
use crate::handshake::send_refusal_in_time;
use crate::link::{self, LinkEndFuture};
use crate::link_end::LinkEnd;
use crate::token_store::Grant;
use crate::worker_orders::WorkerOrders;

/// A peer that a head accepted.
pub enum Incoming {
    /// A client.
    Client(ClientPeer),
    /// A worker.
    Worker(WorkerPeer),
}

/// A client whose token is good.
pub struct ClientPeer {
    pub(crate) frames: Frames<TlsStream<TcpStream>>,
    pub(crate) admission: PeerContext,
}

/// A worker whose token is good.
pub struct WorkerPeer {
    pub(crate) frames: Frames<TlsStream<TcpStream>>,
    pub(crate) admission: PeerContext,
    pub(crate) hello: Box<WorkerHello>,
}

/// The token, the connection slot and the protocol of a peer.
pub(crate) struct PeerContext {
    pub(crate) address: SocketAddr,
    /// The version of its hello: it is welcomed and served in this one.
    pub(crate) version: ProtocolVersion,
    pub(crate) cluster: Fingerprint,
    pub(crate) grant: Grant,
    pub(crate) tokens: TokenStore,
    /// Its connection slot; freed with the end of the link.
    pub(crate) slot: ConnectionSlot,
    /// How long it may take over a message.
    pub(crate) message_limit: Duration,
}

/// A worker's link. It ends when this side closes it, or drops the last clone of `orders`.
pub struct WorkerSession {
    /// Calls to the worker.
    pub orders: WorkerOrders,
    /// Resolves when the link has ended.
    pub closed: LinkEndFuture,
    close: CancellationToken,
}

impl ClientPeer {
    /// Its user and role.
    #[must_use]
    pub const fn by(&self) -> &Principal {
        &self.admission.grant.by
    }

    /// The application whose coordinator it is, if it connected as one.
    #[must_use]
    pub const fn application(&self) -> Option<AttemptId> {
        self.admission.grant.application
    }

    /// The address that it connected from.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.admission.address
    }

    /// Refuses the client, in the version of its hello.
    pub async fn refuse(self, code: HelloRefusalCode, message: String) {
        let answer = HelloAnswer::Refused { code, message };
        send_refusal_in_time(self.frames, self.admission.version, &answer).await;
    }

    /// Welcomes the client and answers its calls, in the version of its hello, until its link ends. Dropped,
    /// it closes the link.
    pub async fn serve<S: ClientService + Clone + Send + Sync + 'static>(self, service: S) -> LinkEnd {
        match self.admission.version {
            ProtocolVersion::V4 => {
                let service = ClientServiceAdapter(service);
                self.serve_calls(move |context, request: v4::ClientServiceRequest| {
                    link::catch_handler_panic(service.clone().serve().serve(context, request))
                })
                .await
            }
            ProtocolVersion::V5 => {
                self.serve_calls(move |context, request: ClientServiceRequest| {
                    link::catch_handler_panic(ClientService::serve(service.clone()).serve(context, request))
                })
                .await
            }
        }
    }

    async fn serve_calls<Request, Answer, Handler>(self, handler: Handler) -> LinkEnd
    where
        Request: DeserializeOwned + RequestName + Send + 'static,
        Answer: Serialize + Send + 'static,
        Handler:
            Fn(Context, Request) -> BoxFuture<'static, Result<Answer, ServerError>> + Clone + Send + 'static,
    {
        let accepted = self.admission.encode_accepted();
        let (ports, pump): (Duplex<Request, NoMessage>, _) =
            duplex(self.frames, Some(accepted), self.admission.message_limit);
        let serves = link::serve(ports.served, handler);
        link::run(pump, pending::<()>(), serves, self.admission.ended()).await
    }
}

impl WorkerPeer {
    /// Its node, and the number of this link.
    #[must_use]
    pub const fn key(&self) -> WorkerKey {
        self.hello.key
    }

    /// The node's resources, and the ranks that it holds.
    #[must_use]
    pub const fn inventory(&self) -> &Inventory {
        &self.hello.inventory
    }

    /// The user and role of its token.
    #[must_use]
    pub const fn by(&self) -> &Principal {
        &self.admission.grant.by
    }

    /// The address that it connected from.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.admission.address
    }

    /// What only this node's worker knows.
    pub(crate) const fn credential(&self) -> Option<Secret> {
        self.hello.credential
    }

    pub(crate) const fn grant(&self) -> &Grant {
        &self.admission.grant
    }

    /// Refuses the worker, in the version of its hello.
    pub async fn refuse(self, code: HelloRefusalCode, message: String) {
        let answer = HelloAnswer::Refused { code, message };
        send_refusal_in_time(self.frames, self.admission.version, &answer).await;
    }

    /// Accepts the worker, which waits ten seconds for this, and starts both services in the version of its
    /// hello.
    pub async fn start_session<S: HeadService + Clone + Send + 'static>(self, service: S) -> WorkerSession {
        match self.admission.version {
            ProtocolVersion::V4 => {
                let service = v4::HeadServiceAdapter(service);
                let handler = move |context, request: v4::HeadServiceRequest| {
                    let serve = v4::HeadService::serve(service.clone());
                    link::catch_handler_panic(serve.serve(context, request))
                };
                self.start_services(handler, |calls| {
                    let NewClient { client, dispatch } =
                        v4::WorkerServiceClient::new(Config::default(), calls);
                    (client.into(), dispatch)
                })
            }
            ProtocolVersion::V5 => {
                let handler = move |context, request: HeadServiceRequest| {
                    link::catch_handler_panic(service.clone().serve().serve(context, request))
                };
                self.start_services(handler, |calls| {
                    let NewClient { client, dispatch } = WorkerServiceClient::new(Config::default(), calls);
                    (client.into(), dispatch)
                })
            }
        }
    }

    /// Starts both services; `handler` takes the calls of the worker, and `client` makes those to it.
    fn start_services<Request, Answer, Handler, Called, Dispatch>(
        self,
        handler: Handler,
        client: impl FnOnce(CallTransport<Response<Called>>) -> (WorkerOrders, Dispatch),
    ) -> WorkerSession
    where
        Request: DeserializeOwned + RequestName + Send + 'static,
        Answer: Serialize + Send + 'static,
        Handler:
            Fn(Context, Request) -> BoxFuture<'static, Result<Answer, ServerError>> + Clone + Send + 'static,
        Called: DeserializeOwned + Send + 'static,
        Dispatch: Future<Output: Send> + Send + 'static,
    {
        let accepted = self.admission.encode_accepted();
        let (ports, pump): (Duplex<Request, Called>, _) =
            duplex(self.frames, Some(accepted), self.admission.message_limit);
        let (orders, dispatch) = client(ports.called);
        let serves = link::serve(ports.served, handler);
        let close = CancellationToken::new();
        let closed = close_requested(self.admission, close.clone());
        WorkerSession { orders, closed: link::spawn(link::run(pump, dispatch, serves, closed)), close }
    }
}

impl WorkerSession {
    /// Ends the link, whoever still holds a clone of `orders`.
    pub fn close(&self) {
        self.close.cancel();
    }
}

impl PeerContext {
    fn encode_accepted(&self) -> Bytes {
        let by = self.grant.by.clone();
        let accepted = HelloAccepted { cluster: self.cluster, by, build: BUILD.to_owned() };
        encode_answer(self.version, &HelloAnswer::Accepted(accepted)).expect("names of tokens are short")
    }

    /// Waits for the end of the token, and holds the connection slot meanwhile.
    async fn ended(self) -> LinkEnd {
        let end = self.tokens.ended(&self.grant).await.into();
        drop(self.slot);
        end
    }
}

async fn close_requested(admission: PeerContext, close: CancellationToken) -> LinkEnd {
    tokio::select! {
        () = close.cancelled() => LinkEnd::ClosedHere,
        end = admission.ended() => end,
    }
}
