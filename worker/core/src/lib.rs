//! The worker of a Cohabit cluster as a state machine.
//!
//! It decides when a rank is started, how it is stopped and what is reported, and does none of it: effects
//! are data that the worker's shell, or the simulator's fake machine, carries out. It reads no clock and
//! knows no process.

mod access;
mod door;
mod environment;
mod gpu;
mod looks;
mod progress;
mod rank;
mod service;
mod sharing;
mod starting;
mod stopping;
mod stretches;
#[cfg(test)]
mod tests;
mod watchdog;
mod worker;
mod xid;

pub use door::{
    Config, FoundRank, GpuAccess, GpuSample, Lease, MpsEvent, MpsLimits, MpsOrder, RankExit, RankStart,
    SignalTarget, WorkerEffect, WorkerEvent,
};
pub use stopping::{StopStep, Stopping};
pub use worker::Worker;
