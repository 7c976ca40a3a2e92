//! Files and directories as a stream of bytes between two machines that do not trust each other.
//!
//! ```text
//! node: send(task) ── walk ──▶ entries ──▶ bytes ─ ─ ─▶ Receiver ── decoder ──▶ tree_writer ──▶ disk
//! ```
//!
//! The sending process has the rights of the account whose files it reads, and nothing more: see [`send`].
//! The receiving one has those of a person on their own machine, so it believes nothing: see [`Receiver`].
//!
//! Not an archive as `tar` writes it: what must not arrive cannot be written down in a [`TransferEntry`] at
//! all, such as devices, owners, set-user-id bits, hard links, absolute names and `..`.
//!
//! Everything that touches the disk blocks.
#![warn(missing_docs)]

mod decoder;
mod entry;
mod limits;
mod path;
mod protected;
mod receiver;
mod refused;
mod send_error;
mod sender;
mod source;
mod tree_writer;
mod walk;

pub use entry::{TransferEntry, TransferFailure, encode};
pub use limits::{DEEPEST, MOST_ENTRIES};
pub use path::{InvalidPath, TransferPath};
pub use receiver::{ReceiveError, ReceiveLimits, Received, Receiver, Target};
pub use sender::{TransferTask, send};
