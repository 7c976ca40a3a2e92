//! The executor as a black box: a directory and a socket go in; processes, files and messages come out.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod ends;
mod family;
mod gpus;
mod kit;
mod orphans;
mod output;
mod reuse;
mod starts;
mod watchdog;
