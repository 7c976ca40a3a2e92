//! `completions`: prints the script by which a shell asks this program for completions.

use std::process::ExitCode;

use clap_complete::Shell;
use clap_complete::env::Shells;
use cohabit_console::{CommandError, CommandErrorKind, output};

use crate::completion::VARIABLE;

pub(super) fn completions(shell: Shell) -> Result<ExitCode, CommandError> {
    let shells = Shells::builtins();
    let failed = |why: String| {
        CommandError::new(CommandErrorKind::Internal, format!("cannot write a script for {shell}: {why}"))
    };
    let completer =
        shells.completer(&shell.to_string()).ok_or_else(|| failed("the shell is not known".to_owned()))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "cohabit", "cohabit", "cohabit", &mut script)
        .map_err(|error| failed(error.to_string()))?;
    output::print_text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
