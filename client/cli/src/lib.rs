//! The `cohabit` program: the daemons and the commands of users.
//!
//! This crate connects the others and decides nothing about jobs. `arguments` defines the command line,
//! `commands` has one module for each subcommand, `config` reads settings by `cohabit-settings` and `render`
//! turns records into tables and documents. Output, errors and exit codes are in `cohabit-console`;
//! `simulate`, `predict` and
//! `profile` are in `cohabit-lab`. Start reading at `commands/mod.rs`.

mod arguments;
mod clock;
mod code_changes;
mod command_line;
mod commands;
mod completion;
mod config;
#[cfg(feature = "daemon")]
mod daemon;
mod endpoint;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod job_flags;
mod log_printer;
mod process;
mod render;
mod script;
mod share_file;
mod slurm;
mod sweep;
mod token_expiry;
mod values;
#[cfg(feature = "worker")]
mod worker_directory;

use std::env;
use std::process::ExitCode;

use clap_complete::CompleteEnv;
use cohabit_console::output;

use self::command_line::ParsedCommandLine;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // A shell that asks for candidates sets a variable; then this call prints them and ends the process.
    CompleteEnv::with_factory(completion::command).var(completion::VARIABLE).complete();
    let ParsedCommandLine { verb, script, warnings } = match command_line::read(env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(error) => return error.report(),
    };
    warnings.iter().for_each(|warning| output::print_message(&format!("warning: {warning}")));
    let format = verb.format();
    match commands::dispatch(verb, script) {
        Ok(code) => code,
        Err(error) => {
            output::print_error(&error, format);
            error.exit_code()
        }
    }
}
