//! Those whom the head has let in: it welcomes each when it is ready for it, and their links end with their
//! tokens.

use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use cohabit_types::{Inventory, Principal, WorkerKey};
use tarpc::client::{Config, NewClient};
use tarpc::server::Serve;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::duplex::{Duplex, duplex};
use crate::hello::{BUILD, HelloAccepted, HelloAnswer, WorkerHello, encode_hello};
use crate::link::{self, LinkEnd, LinkEndFuture};
use crate::message::NoMessage;
use crate::places::ConnectionSlot;
use crate::services::{
    ClientService, ClientServiceRequest, HeadService, HeadServiceRequest, WorkerServiceClient,
    WorkerServiceResponse,
};
use crate::token_store::Grant;
use crate::wire::Frames;
use crate::{Fingerprint, TokenStore};

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

/// By what right a peer is here.
pub(crate) struct PeerContext {
    pub(crate) address: SocketAddr,
    pub(crate) cluster: Fingerprint,
    pub(crate) grant: Grant,
    pub(crate) tokens: TokenStore,
    /// Its place among the connections that the head allows; given back with the last of the link.
    pub(crate) place: ConnectionSlot,
    /// How long it may take over a message.
    pub(crate) message_limit: Duration,
}

/// A worker's link. It ends when this side closes it, or drops the last clone of `orders`.
pub struct WorkerSession {
    /// What to tell the worker by.
    pub orders: WorkerServiceClient,
    /// Resolves when the link has ended.
    pub closed: LinkEndFuture,
    close: CancellationToken,
}

impl ClientPeer {
    /// Who it is.
    #[must_use]
    pub const fn by(&self) -> &Principal {
        &self.admission.grant.by
    }

    /// Where it dialled from.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.admission.address
    }

    /// Welcomes the client and answers it until its link ends. Dropped, it closes the link.
    pub async fn serve<S: ClientService + Clone + Send + 'static>(self, service: S) -> LinkEnd {
        let greeting = self.admission.welcome();
        let (ports, pump): (Duplex<ClientServiceRequest, NoMessage>, _) =
            duplex(self.frames, Some(greeting), self.admission.message_limit);
        let serves = link::serve(ports.served, move |context, request| {
            link::catch_handler_panic(service.clone().serve().serve(context, request))
        });
        link::run(pump, pending::<()>(), serves, self.admission.ended()).await
    }
}

impl WorkerPeer {
    /// Which link of which node it is.
    #[must_use]
    pub const fn key(&self) -> WorkerKey {
        self.hello.key
    }

    /// What the node has and holds.
    #[must_use]
    pub const fn inventory(&self) -> &Inventory {
        &self.hello.inventory
    }

    /// Whose token it came with.
    #[must_use]
    pub const fn by(&self) -> &Principal {
        &self.admission.grant.by
    }

    /// Where it dialled from.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.admission.address
    }

    /// Welcomes the worker, which waits for this for ten seconds, and puts both services to work.
    pub async fn welcome<S: HeadService + Clone + Send + 'static>(self, service: S) -> WorkerSession {
        let greeting = self.admission.welcome();
        let (ports, pump): (Duplex<HeadServiceRequest, WorkerServiceResponse>, _) =
            duplex(self.frames, Some(greeting), self.admission.message_limit);
        let NewClient { client: orders, dispatch } =
            WorkerServiceClient::new(Config::default(), ports.called);
        let serves = link::serve(ports.served, move |context, request| {
            link::catch_handler_panic(service.clone().serve().serve(context, request))
        });
        let close = CancellationToken::new();
        let cut = cut(self.admission, close.clone());
        WorkerSession { orders, closed: link::spawn(link::run(pump, dispatch, serves, cut)), close }
    }
}

impl WorkerSession {
    /// Ends the link, whoever still holds a clone of `orders`.
    pub fn close(&self) {
        self.close.cancel();
    }
}

impl PeerContext {
    fn welcome(&self) -> Bytes {
        let by = self.grant.by.clone();
        let welcome = HelloAccepted { cluster: self.cluster, by, build: BUILD.to_owned() };
        encode_hello(&HelloAnswer::Accepted(welcome)).expect("names of tokens are short")
    }

    /// Waits for the end of the token. The place is held meanwhile.
    async fn ended(self) -> LinkEnd {
        let end = self.tokens.ended(&self.grant).await.into();
        drop(self.place);
        end
    }
}

async fn cut(admission: PeerContext, close: CancellationToken) -> LinkEnd {
    tokio::select! {
        () = close.cancelled() => LinkEnd::ClosedHere,
        end = admission.ended() => end,
    }
}
