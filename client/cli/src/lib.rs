//! The one binary of Cohabit: the head, the worker, and everything that people do with them.
//!
//! This crate puts the others together and decides nothing about jobs. `arguments` says what may be written,
//! `commands` does it, `render` and `output` show it, and `failure` says how it ended.

mod arguments;
mod clock;
mod command_line;
mod commands;
mod config;
mod connect;
#[cfg(feature = "daemon")]
mod daemon;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod nearest;
mod process;
mod render;
mod script;
mod specification;
mod usage;
mod values;
#[cfg(feature = "worker")]
mod worker_directory;

use std::env;
use std::process::ExitCode;

use cohabit_console::output;

/// Does what the command line says.
pub fn main() -> ExitCode {
    let verb = match command_line::read(env::args_os().collect()) {
        Ok(verb) => verb,
        Err(unread) => return unread.tell(),
    };
    let format = verb.format();
    match commands::dispatch(verb) {
        Ok(code) => code,
        Err(failure) => {
            output::print_error(&failure, format);
            failure.exit_code()
        }
    }
}
