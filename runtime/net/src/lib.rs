//! Cohabit's links: how clients and workers reach the head, and how each knows the other.
//!
//! One port, TLS 1.3 with the cluster's own CA, a token in the first frame, then tarpc services over bincode
//! frames. Clients and workers dial ([`connect_client`], [`connect_worker`]), the head listens
//! ([`Listener`]); a worker's one connection carries a service in each direction. This crate never decides
//! what a request means, never retries by itself ([`Backoff`] is for callers) and never shows a secret in a
//! log or an error.
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

mod backoff;
mod clock;
mod complaints;
mod connect;
mod duplex;
mod error;
mod fingerprint;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod greeting;
mod hello;
mod identity;
mod link;
mod listener;
mod message;
mod open_files;
mod peer;
mod places;
mod private_file;
mod services;
mod socket;
mod tls;
mod token;
mod token_store;
mod wire;

pub use backoff::Backoff;
pub use connect::{Endpoint, WorkerLink, connect_client, connect_worker};
pub use error::{LinkError, LinkErrorKind, StateError};
pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use hello::{HelloAccepted, HelloRefusalCode, PROTOCOL_VERSION, WorkerHello};
pub use identity::HeadIdentity;
pub use link::{LinkEnd, LinkEndFuture};
pub use listener::{Incoming, Listener, ListenerLimits};
pub use message::{MAX_CALL, context_for};
pub use open_files::{initial_open_file_limit, raise_open_file_limit};
pub use peer::{ClientPeer, WorkerPeer, WorkerSession};
pub use services::{
    ClientService, ClientServiceClient, HeadService, HeadServiceClient, WorkerService, WorkerServiceClient,
};
pub use tarpc::client::RpcError;
pub use tarpc::context::Context;
pub use token::{Token, TokenError};
pub use token_store::{TokenEnd, TokenStore, TokenStoreError, VerifyError};
pub use wire::MAX_FRAME;

/// The port that a head listens on unless it is told another.
pub const DEFAULT_PORT: u16 = 7070;

#[cfg(test)]
mod tests;
