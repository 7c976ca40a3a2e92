//! End-to-end figures: a head, a worker, the `cohabit` command, and programs that do nothing.
//!
//! The baseline is measured in the same run: one program after the other, started by `posix_spawn` and waited
//! for.

pub(crate) mod array;
pub(crate) mod command;
pub(crate) mod idle;
pub(crate) mod keys;
