//! What people feel: a head, a worker, the `cohabit` command, and programs that do nothing.
//!
//! The yardstick is what the same machine can do at best in the same run: one program after the other,
//! started by `posix_spawn` and waited for.

pub(crate) mod array;
pub(crate) mod command;
pub(crate) mod idle;
