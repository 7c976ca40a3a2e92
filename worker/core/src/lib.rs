//! The worker of a Cohabit cluster as a state machine.
//!
//! It decides when a rank is started, how it is stopped and what is reported, and does none of it: effects are data
//! that the worker's shell, or the simulator's fake machine, carries out. It reads no clock and knows no process.

mod door;

pub use door::{Config, Effect, Event, FoundRank, Lease, RankStart, Target};
