//! Channels against a receiver on this machine that fails, is slow, or sees this program end.

mod deliveries;
mod digests;
mod kills;
mod kit;
