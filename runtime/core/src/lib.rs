//! The head of a Cohabit cluster as a state machine.
//!
//! All change enters by one door, [`Head::handle`]; everything else only reads. Effects are data that the daemon, or
//! the simulator, carries out in order. The head reads no clock, knows no socket and calls no policy: it asks for a
//! plan and checks the answer.

mod door;

pub use door::{Config, Effect, Event, Why};
