//! `submit`: gives a job to the cluster and prints its number.

use std::process::ExitCode;

use cohabit_client::proto::{Array, JobId};

use super::{dry_run, exit_code, submission};
use crate::arguments::{OutputFormat, SubmitArguments};
use crate::connect::connect;
use crate::failure::CommandError;
use crate::output;
use crate::render::documents::{SubmittedJobDocument, with_schema};

pub(super) async fn submit(arguments: SubmitArguments) -> Result<ExitCode, CommandError> {
    let format = arguments.submission.display.output;
    let is_dry = arguments.submission.dry_run;
    let client = connect(&arguments.submission.connection).await?;
    let submission = submission::prepare(&client, arguments.submission).await?;
    if is_dry {
        return dry_run::dry_run(&client, &submission, format).await;
    }
    let job = client.submit(&submission).await?;
    let members = submission.spec().array.as_ref().map(Array::len);
    tell(job.id(), members, format)?;
    if !arguments.following.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let ended = job.wait().await?;
    output::message(&format!("job {} {}: {}", ended.id, ended.state, ended.reason));
    Ok(exit_code(ended.shell_code().unwrap_or(0)))
}

fn tell(id: JobId, members: Option<u64>, format: OutputFormat) -> Result<(), CommandError> {
    match (format, members) {
        (OutputFormat::Quiet, _) => output::data(&id.to_string()),
        (OutputFormat::Json, members) => {
            output::document(&with_schema(SubmittedJobDocument { id, members: members.unwrap_or(1) }))
        }
        (OutputFormat::Table | OutputFormat::Wide, None) => output::data(&format!("Submitted job {id}")),
        (OutputFormat::Table | OutputFormat::Wide, Some(members)) => {
            output::data(&format!("Submitted job {id} with {members} members"))
        }
    }
}
