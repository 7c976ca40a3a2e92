//! The command line of this process.

use std::env;

use cohabit_types::quoted_command;

/// The command line as the user typed it, quoted so that a shell can run it again.
pub fn current_command_line() -> String {
    let words: Vec<String> = env::args().skip(1).collect();
    format!("cohabit {}", quoted_command(words.iter().map(String::as_str)))
}
