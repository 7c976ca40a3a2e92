//! Messages about what happens on a cluster: a client of the head that follows its feed and tells people.
//!
//! ```text
//! head ── feed ──> channel::Follower ── router ──> message ── form ──> HTTP or SMTP
//!                        └── state file: how far each channel has come, written after each delivery
//! ```
//!
//! Each channel follows the feed by itself, with a cursor of its own, so that one that is down holds up no
//! other and nothing is kept in memory for it. An entry is delivered at least once, and twice only where this
//! program was killed between a delivery and the note of it; its number is the `Idempotency-Key`.
//!
//! | Module | What it holds |
//! |---|---|
//! | `config` | the file that admins write: channels, routes, and files with secrets |
//! | `router` | which channels an entry goes to |
//! | `message` | an entry, or several, in words |
//! | `form` | a message in the form of each kind of channel; no text in it becomes markup or a header |
//! | `channel` | the loop of a channel, its pauses after failures, and its digests |
//! | `state_file` | how far each channel has come, on the disk |
//! | `feed_source` | where the feed comes from |
//! | `service` | all channels together, until the program is stopped |
//!
//! Nothing here decides about jobs. Start reading at `channel/follower.rs`.

mod channel;
mod clock;
mod config;
mod error;
mod feed_source;
mod form;
mod message;
mod problems;
mod router;
mod service;
mod state_file;

pub use self::config::NotifyConfig;
pub use self::error::NotifyError;
pub use self::service::{TestMessage, run, send_test};
