//! The one binary of Cohabit: the head, the worker, and everything that people do with them.
//!
//! This crate puts the others together and decides nothing about jobs. `arguments` says what may be written,
//! `commands` does it, `render` and `output` show it, and `failure` says how it ended.

mod arguments;
mod clock;
mod closest_name;
mod command_line;
mod commands;
mod config;
#[cfg(feature = "daemon")]
mod daemon;
mod endpoint;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod job_spec;
mod log_writer;
mod process;
mod render;
mod script;
mod usage_message;
mod values;
#[cfg(feature = "worker")]
mod worker_directory;

use std::env;
use std::process::ExitCode;

use cohabit_console::output;

use self::command_line::ParsedCommandLine;

/// Does what the command line says.
pub fn main() -> ExitCode {
    let ParsedCommandLine { verb, script } = match command_line::read(env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(error) => return error.report(),
    };
    let format = verb.format();
    match commands::dispatch(verb, script) {
        Ok(code) => code,
        Err(error) => {
            output::print_error(&error, format);
            error.exit_code()
        }
    }
}
