//! This process: the event loop of client commands, and exit codes.

use std::process::ExitCode;

use cohabit_console::{CommandError, CommandErrorKind};

/// Runs a future of a client command to its end, on this thread.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot create an event loop: {error}"))
    })?;
    runtime.block_on(command)
}

/// The exit code of this program for that of a job.
pub(crate) fn exit_code(shell_code: i32) -> ExitCode {
    // Exit codes are bytes: shells cut off the rest.
    ExitCode::from((shell_code & 0xff) as u8)
}
