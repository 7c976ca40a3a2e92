//! The client against a fake head: a real listener with TLS and tokens, whose answers are written by each
//! test.
//!
//! The real head is tested with the SDK in the integration tests.
#![expect(clippy::unwrap_used, reason = "tests, and what they share, end where something is wrong")]

mod applications;
mod calls;
mod changes;
mod code;
mod dry_runs;
mod kit;
mod link;
mod lists;
mod logs;
mod records;
mod watching;
