//! Connections between nodes, with real sockets on the loopback interface.

mod kit;
mod sessions;
mod strangers;
