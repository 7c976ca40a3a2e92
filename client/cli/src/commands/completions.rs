//! `completions`: prints the completion script of a shell.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;
use cohabit_console::{CommandError, output};

use crate::arguments::CommandLine;

pub(super) fn completions(shell: Shell) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "cohabit", &mut script);
    output::print_text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
