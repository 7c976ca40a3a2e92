//! `cohabit notify` with a live head and worker, and a receiver on this machine.

mod messages;
mod receiver;
