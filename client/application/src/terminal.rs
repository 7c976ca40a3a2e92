//! What this crate says on standard error, and how a process ends.

use std::io::Write;

/// Says a sentence to the person who reads the output of the program.
pub(crate) fn say(text: &str) {
    // Nothing can be done where standard error is closed.
    let _written = writeln!(std::io::stderr(), "cohabit: {text}");
}

/// Ends the process at once; what was printed is flushed.
pub(crate) fn exit(code: i32) -> ! {
    std::process::exit(code)
}
