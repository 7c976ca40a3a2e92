//! Tests: the simulator's own parts, and the named scenarios.

mod checkers;
mod kit;
mod machine;
mod scenarios;
mod swarm;
