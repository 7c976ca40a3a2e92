//! The executor's own messages: what prevents it from doing its work.

use std::fmt;

/// Prints a message to standard error, which is the file `executor.log` of the rank's directory.
#[expect(clippy::print_stderr, reason = "it becomes a file for whoever investigates a lost rank")]
pub(crate) fn log_error(message: &impl fmt::Display) {
    eprintln!("executor {}: {message}", std::process::id());
}
