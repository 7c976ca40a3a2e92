//! `submit`: submits a job and prints its number.

use std::process::ExitCode;

use cohabit_client::types::{Array, JobId, JobInput, counted};
use cohabit_console::{CommandError, output, with_schema};

use super::{dry_run, submission};
use crate::arguments::{OutputFormat, SubmitArguments};
use crate::endpoint::connect;
use crate::process::exit_code;
use crate::script::Script;
use cohabit_documents::jobs::SubmittedJobDocument;

pub(super) async fn submit(
    arguments: SubmitArguments,
    script: Option<Script>,
) -> Result<ExitCode, CommandError> {
    let format = arguments.submission.display.output;
    let is_dry = arguments.submission.dry_run;
    let client = connect(&arguments.submission.connection).await?;
    let prepared = submission::prepare(&client, arguments.submission, script, JobInput::Empty).await?;
    if is_dry {
        return dry_run::dry_run(&client, &prepared.submission, format).await;
    }
    let job = prepared.submit(&client).await?;
    let members = prepared.submission.spec().array.as_ref().map(Array::len);
    print_result(job.id(), members, format)?;
    if !arguments.following.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let ended = job.wait().await?;
    output::print_message(&format!("job {} {}: {}", ended.id, ended.state, ended.reason));
    Ok(exit_code(ended.shell_code().unwrap_or(0)))
}

fn print_result(id: JobId, members: Option<u64>, format: OutputFormat) -> Result<(), CommandError> {
    match (format, members) {
        (OutputFormat::Quiet, _) => output::print_text(&id.to_string()),
        (OutputFormat::Json, members) => {
            output::print_document(&with_schema(SubmittedJobDocument { id, members: members.unwrap_or(1) }))
        }
        (OutputFormat::Table | OutputFormat::Wide, None) => {
            output::print_text(&format!("Submitted job {id}"))
        }
        (OutputFormat::Table | OutputFormat::Wide, Some(members)) => {
            let members = counted(members, "member", "members");
            output::print_text(&format!("Submitted job {id} with {members}"))
        }
    }
}
