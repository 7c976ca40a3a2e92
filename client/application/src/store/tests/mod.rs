//! Stores and links, with real sockets, memory and disks.

mod killed;
mod kit;
mod requests;
mod room;
mod speed;
mod strangers;
