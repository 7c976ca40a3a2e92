//! Objects from the store of one node to that of another, over connections that somebody else opens: they are
//! authenticated, and both ends are processes of this application.
//!
//! ```text
//! who fetches (puller)                     who has it (source)
//!   FetchRequest: object, from where, how much ──▶
//!                                          ◀── FetchReply: the size of the object, or why not
//!                                          ◀── so many bytes, as they are
//! ```
//!
//! Several requests can follow each other. An object below 64 MiB comes over one connection, a larger one
//! over four at once. The source reads memory or the spill file in pieces, and keeps what it reads for as
//! long as it serves it. Threads of their own (threads) encrypt, decrypt and copy. An end that does nothing
//! for half a minute is cut off.

mod connection;
mod frames;
mod puller;
mod serving_places;
mod source;
mod threads;

pub(super) use connection::{ConnectionOpening, NodeConnector, OpenedConnection, OtherStore};
#[cfg(test)]
pub(super) use frames::{FetchReply, FetchRequest, read_frame, write_frame};
pub(super) use puller::{FetchedObject, pull};
pub(super) use serving_places::ServingPlaces;
pub(super) use source::serve_fetches;
pub(super) use threads::TransferThreads;
