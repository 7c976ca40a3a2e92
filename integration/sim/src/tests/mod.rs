//! Tests: the simulator's own parts, and the named scenarios.

mod checkers;
#[cfg(feature = "learned")]
mod evaluation;
mod gangs;
mod kit;
mod machine;
mod scenarios;
mod swarm;
