//! Large objects of an application on one node: who stores and reads them, and the store that has them.
//!
//! ```text
//! StoreLink, in each process                  NodeStore, on a thread of its own
//!   store: Reserve ──▶                          StoreServer: memory, spill files, timers
//!          ◀── Allocated, with memory             decides nothing: the core `ObjectStore` does
//!          fills and seals, Filled ──▶          checks the seals
//!          ◀── Stored
//!   read:  Want ──▶                             brings it back from disk, if it is there
//!          ◀── HandOver, with sealed memory     counts it as mapped
//!          the last reader has gone: Unmapped ──▶
//! ```
//!
//! What is not on this node comes from another one, as the coordinator says: the store tells it what is
//! wanted ([`FromStore`](cohabit_application_core::FromStore)), is told where it is
//! ([`ToStore`](cohabit_application_core::ToStore)), and fetches it from the store there.
//!
//! Each process has one connection, which `transport` lets in like any other. Frames have at most 1 KiB; the
//! bytes of objects never travel, for all map the same memory. The end of a connection is the end of one
//! side: what it had reserved goes, and what it has stored stays.
//!
//! # Where to start reading
//!
//! ```text
//! store_link   the process's side       link_table    who waits for what, what is mapped
//! node_store   the thread, its channel  settings      what it may use (file_limit)
//!   server       effects of the core      object_memory descriptors     refusal why not, in words
//!   server_connection one process         reply_queue   what it is told
//!   server_fetch what the coordinator says          transfer      objects from node to node
//! frame_stream frames with descriptors, both ways     network       connections with other nodes
//! ```

mod file_limit;
mod frame_stream;
mod link_table;
mod network;
mod node_store;
mod object_memory;
mod refusal;
mod reply_queue;
mod server;
mod server_connection;
mod server_fetch;
mod settings;
mod store_link;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use network::{NodeAddresses, admit_store, connect_stores};
pub(crate) use node_store::{NodeStore, StoreEnded};
pub(crate) use settings::{StoreOutlets, StoreSettings};
pub(crate) use store_link::StoreLink;
