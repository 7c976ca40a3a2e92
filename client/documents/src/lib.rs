//! Documents for scripts: `"schema": 1`, times in RFC 3339 UTC, durations in seconds, sizes in bytes.
//!
//! What commands print with `--output json`, and what Python's records hold. The documents are stable: they
//! are types of their own, so that the protocol can change without changing them.

pub mod explanation;
pub mod jobs;
pub mod metrics;
pub mod nodes;
