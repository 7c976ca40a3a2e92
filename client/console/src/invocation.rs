//! The command line of this process.

use std::env;

/// The command line as the user typed it, quoted so that a shell can run it again.
pub fn current_command_line() -> String {
    let words: Vec<String> = env::args().skip(1).collect();
    let words = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    format!("cohabit {words}")
}
