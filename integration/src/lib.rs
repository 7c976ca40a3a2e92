//! Nothing by itself: this crate holds the tests that look at Cohabit from outside.
//!
//! `tests/architecture.rs` holds the table of allowed dependencies, `tests/tidy.rs` the rules of style that a
//! machine can check, `tests/cluster` starts the real binary as real processes on loopback, and
//! `tests/seeds.rs` runs seeds of the simulator. Benches, run by hand, live in `benches`.
