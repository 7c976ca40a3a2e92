//! Cohabit's links: how clients and workers reach the head, and how each knows the other.
//!
//! One port, TLS 1.3 with the cluster's own CA, a token in the first frame, then tarpc services over bincode
//! frames. Clients and workers dial ([`connect_client`], [`connect_worker`]), the head listens
//! ([`Listener`]); a worker's one connection carries a service in each direction. This crate never decides
//! what a request means, never retries by itself ([`Backoff`] is for callers) and never shows a secret in a
//! log or an error.
//!
//! Processes of an application on different nodes have connections of their own: [`ApplicationTls`].
//!
//! What callers have to know:
//! - A handler is dropped at its next await when its caller gives up or disconnects. Work that must survive
//!   that is spawned, and only awaited in the handler.
//! - A call has ten seconds unless it says more: long polls use [`context_for`].
//! - A message is at most [`MAX_FRAME`] long. A longer request fails by itself, a longer answer becomes an
//!   error of its call; the link lives on. Answers are paged by those who write them.
//! - A peer that vanished is noticed within two minutes by TCP; heartbeats, which callers send, are sooner.
//!   One that takes a minute over one message, sent or taken, is hung up on.
//! - tarpc opens a span at INFO for every call: a log filter contains `tarpc=warn`.
#![warn(missing_docs)]

mod application_tls;
mod application_tokens;
mod backoff;
mod clock;
mod connection_slots;
mod dial;
mod digest;
mod duplex;
mod endpoint;
mod error;
mod frames;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod identity;
mod link;
mod link_end;
mod listener;
mod node_credentials;
mod open_file_limit;
mod peer;
mod private_file;
mod rate_limited_log;
#[cfg(feature = "recorded")]
#[doc(hidden)]
pub mod recorded;
mod socket;
mod storage_remedy;
mod tls;
mod token;
mod token_store;
mod worker_orders;
mod worker_reports;

pub use application_tls::{ApplicationStream, ApplicationTls};
pub use application_tokens::ApplicationTokens;
pub use backoff::Backoff;
pub use cohabit_wire::codec::MAX_FRAME;
pub use cohabit_wire::message::{MAX_CALL, context_for};
pub use cohabit_wire::{
    ClientService, ClientServiceClient, Fingerprint, HeadService, HelloAccepted, HelloRefusalCode,
    PROTOCOL_VERSION, ParseFingerprintError, Secret, WorkerHello, WorkerService,
};
pub use dial::{WorkerLink, connect_client, connect_worker};
pub use endpoint::{DEFAULT_PORT, Endpoint};
pub use error::{LinkError, LinkErrorKind};
pub use identity::HeadIdentity;
pub use link::LinkEndFuture;
pub use link_end::LinkEnd;
pub use listener::{Listener, ListenerLimits};
pub use node_credentials::{NodeClaimError, NodeCredentials};
pub use open_file_limit::{initial_open_file_limit, open_file_limit, raise_open_file_limit};
pub use peer::{ClientPeer, Incoming, WorkerPeer, WorkerSession};
pub use private_file::StateError;
pub use rate_limited_log::{RateLimitedLog, RejectionClass};
pub use storage_remedy::storage_remedy;
pub use tarpc::client::RpcError;
pub use tarpc::context::Context;
pub use token::{Token, TokenError, new_credential};
pub use token_store::{TokenEnd, TokenStore, TokenStoreError, VerifyError};
pub use worker_orders::WorkerOrders;
pub use worker_reports::WorkerReports;

#[cfg(test)]
mod tests;
