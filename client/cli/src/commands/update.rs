//! `update`: changes the settings of jobs that wait.

use std::process::ExitCode;

use cohabit_client::types::{ChangeResult, JobId, JobSettings};
use cohabit_console::{CommandError, output, printable_line, with_schema};
use jiff::Zoned;
use serde::Serialize;

use super::job_reference::resolve;
use crate::arguments::{OutputFormat, UpdateArguments};
use crate::endpoint::connect;

pub(super) async fn update(arguments: UpdateArguments) -> Result<ExitCode, CommandError> {
    let begin = arguments.begin.map(|begin| begin.resolve(&Zoned::now())).transpose();
    let update = JobSettings {
        priority: arguments.priority,
        time_limit: arguments.time,
        retries: arguments.retries,
        begin: begin.map_err(CommandError::invalid)?,
    };
    let client = connect(&arguments.connection).await?;
    let jobs = resolve(&client, &arguments.jobs.references).await?;
    let results = client.update(&update, &jobs).await?;
    print_results(&update, &results, arguments.display.output)?;
    let refused = results.into_iter().find_map(|(_, result)| match result {
        ChangeResult::Refused(refusal) => Some(CommandError::from(refusal)),
        ChangeResult::Done | ChangeResult::Already => None,
    });
    Ok(refused.map_or(ExitCode::SUCCESS, |error| error.exit_code()))
}

/// `{"updates": [{"id", "result", "message"}]}`
#[derive(Debug, Serialize)]
struct UpdateListDocument {
    updates: Vec<UpdateDocument>,
}

#[derive(Debug, Serialize)]
struct UpdateDocument {
    id: JobId,
    result: &'static str,
    message: Option<String>,
}

fn print_results(
    update: &JobSettings,
    results: &[(JobId, ChangeResult)],
    format: OutputFormat,
) -> Result<(), CommandError> {
    if format == OutputFormat::Json {
        let document = |(id, result): &(JobId, ChangeResult)| {
            let (result, message) = match result {
                ChangeResult::Done | ChangeResult::Already => ("done", None),
                ChangeResult::Refused(refusal) => ("refused", Some(refusal.message.clone())),
            };
            UpdateDocument { id: *id, result, message }
        };
        let updates = results.iter().map(document).collect();
        return output::print_document(&with_schema(UpdateListDocument { updates }));
    }
    for (job, result) in results {
        match (result, format) {
            (ChangeResult::Refused(refusal), _) => {
                let why = printable_line(&refusal.message);
                output::print_message(&format!("error: cannot update job {job}: {why}"));
            }
            (_, OutputFormat::Quiet) => output::print_text(&job.to_string())?,
            (ChangeResult::Done | ChangeResult::Already, _) => {
                output::print_text(&format!("Updated job {job}: {update}"))?;
            }
        }
    }
    Ok(())
}
