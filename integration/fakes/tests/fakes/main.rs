//! Tests of the fakes, and of the code for real GPUs on them.
//!
//! First that the fakes fail in the ways in which the real ones were seen to fail; then that `cohabit-gpu`
//! copes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod clients;
mod discovery;
mod kit;
mod looks;
mod mps_daemon;
mod mps_faults;
mod mps_quirks;
mod mps_sessions;
mod mps_starts;
mod real_programs;
mod xids;
