//! `wait`: waits until jobs have ended and exits with the first exit code other than 0.

use std::process::ExitCode;

use cohabit_client::types::JobRecord;
use cohabit_console::CommandError;

use super::list;
use crate::arguments::WaitArguments;
use crate::endpoint::connect_to_wait;
use crate::process::exit_code;

pub(super) async fn wait(arguments: WaitArguments) -> Result<ExitCode, CommandError> {
    let client = connect_to_wait(&arguments.connection).await?;
    let ids = client.resolve(&arguments.jobs.references).await?;
    let ended = client.wait(&ids).await?;
    list::print_result(&ended, arguments.display.output)?;
    let codes = ended.iter().filter_map(JobRecord::shell_code);
    Ok(exit_code(codes.into_iter().find(|code| *code != 0).unwrap_or(0)))
}
