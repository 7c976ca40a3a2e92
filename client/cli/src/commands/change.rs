//! `cancel`, `hold`, `release`, `requeue`: one change to some jobs, named or selected.

use std::process::ExitCode;

use cohabit_client::types::{ChangeResult, JobChange, JobId};
use cohabit_console::{CommandError, output, with_schema};

use super::selection;
use crate::arguments::{CancelArguments, ChangeArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::change_results::describe_change_result;
use cohabit_documents::jobs::{ChangeDocument, ChangeListDocument};

pub(super) async fn cancel(arguments: CancelArguments) -> Result<ExitCode, CommandError> {
    let kind = if arguments.force { JobChange::Kill } else { JobChange::Cancel };
    change(kind, arguments.change).await
}

pub(super) async fn change(change: JobChange, arguments: ChangeArguments) -> Result<ExitCode, CommandError> {
    selection::check(change, &arguments)?;
    let client = connect(&arguments.connection()).await?;
    let jobs = match arguments.references.is_empty() {
        false => client.resolve(&arguments.references).await?,
        true => selection::select(&client, change, &arguments.selection).await?,
    };
    if jobs.is_empty() {
        output::print_message(&selection::nothing_selected(change));
    }
    let results = client.change(change, &jobs).await?;
    print_result(change, &results, arguments.display.output)?;
    Ok(results.iter().find_map(refusal).map_or(ExitCode::SUCCESS, |failure| failure.exit_code()))
}

/// Refusals are printed already; this one only gives the exit code.
fn refusal((_, result): &(JobId, ChangeResult)) -> Option<CommandError> {
    match result {
        ChangeResult::Done | ChangeResult::Already => None,
        ChangeResult::Refused(refusal) => Some(refusal.clone().into()),
    }
}

fn print_result(
    change: JobChange,
    results: &[(JobId, ChangeResult)],
    format: OutputFormat,
) -> Result<(), CommandError> {
    if format == OutputFormat::Json {
        let changes = results.iter().map(|(job, result)| ChangeDocument::new(change, *job, result)).collect();
        return output::print_document(&with_schema(ChangeListDocument { changes }));
    }
    for (job, result) in results {
        let sentence = describe_change_result(change, *job, result);
        match (result, format) {
            (ChangeResult::Refused(_), _) => output::print_message(&format!("error: {sentence}")),
            (ChangeResult::Done, OutputFormat::Quiet) => output::print_text(&job.to_string())?,
            (ChangeResult::Already, OutputFormat::Quiet) => {}
            (ChangeResult::Done | ChangeResult::Already, _) => output::print_text(&sentence)?,
        }
    }
    Ok(())
}
