//! Cohabit's protocol: the messages that travel on links, their bytes, and the rules of its versions.
//!
//! - [`codec`]: a message becomes bytes, and bytes become a message.
//! - [`hello`]: the first frame each way, which says the version; its outer layout never changes.
//! - [`message`]: a frame after the hello: a call, a cancellation or an answer.
//! - The services of the current version are at the top of this crate: [`ClientService`], [`HeadService`] and
//!   [`WorkerService`], one typed method for each question and each change.
//! - [`v4`]: the version before, frozen: its services, the message types that have changed since, and
//!   conversions to and from today's.
//!
//! A head of protocol N serves peers of protocols N and N-1 ([`ProtocolVersion`]). Types of `cohabit-types`
//! travel by their serde derive; `golden/` holds the bytes of every message of both versions, and a test
//! fails when a change of a type changes them. Whoever must change such a type freezes its earlier form in
//! the module of the earlier version first: see
//! docs/decisions/022-a-head-serves-the-protocol-before-its-own.md.
//!
//! This crate opens no connection and decides nothing about jobs: `cohabit-net` carries the frames. Start
//! reading with the services.
#![warn(missing_docs)]

pub mod codec;
mod fingerprint;
pub mod hello;
pub mod message;
mod secret;
mod services;
pub mod v4;
mod version;

pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use hello::{HelloAccepted, HelloRefusalCode, WorkerHello};
pub use secret::Secret;
pub use services::*;
pub use version::{BUILD, PROTOCOL_VERSION, ProtocolVersion};
