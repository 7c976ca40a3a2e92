//! Tests of the simulator's parts, and named scenarios.

mod calibration;
mod checkers;
#[cfg(feature = "learned")]
mod evaluation;
mod gangs;
mod gpus;
#[cfg(feature = "learned")]
mod host_ranges;
mod kit;
mod machine;
mod nonsense;
mod planted_bugs;
mod recoveries;
mod scenarios;
#[cfg(feature = "learned")]
mod sharing;
mod suspensions;
mod swarm;
mod unseen_faults;
