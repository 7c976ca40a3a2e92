//! Stores and links, with real sockets, memory and disks.

mod fetching;
mod hostile_fetches;
mod killed;
mod kit;
mod network;
mod nodes;
mod requests;
mod room;
mod speed;
mod strangers;
