//! `completions`: what a shell needs to complete our commands and flags.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::arguments::CommandLine;
use crate::failure::CommandError;
use crate::output;

pub(super) fn completions(shell: Shell) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "cohabit", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
