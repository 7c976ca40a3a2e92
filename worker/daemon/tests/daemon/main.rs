//! The worker daemon with real processes, from the head's side of the link.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod applications;
mod checkpoints;
mod code;
mod copies;
mod execs;
mod input;
mod joins;
mod kit;
mod latency;
mod logs;
mod restarts;
mod retention;
mod runs;
