//! `cancel`, `hold`, `release`, `requeue`: one change to some jobs.

use std::process::ExitCode;

use cohabit_client::proto::{ChangeResult, JobChange, JobId};
use cohabit_console::{CommandError, output, with_schema};

use crate::arguments::{ChangeArguments, OutputFormat};
use crate::connect::connect;
use crate::render::changes;
use crate::render::documents::{ChangeDocument, ChangeListDocument};

pub(super) async fn change(change: JobChange, arguments: ChangeArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let jobs = client.resolve(&arguments.jobs.references).await?;
    let verdicts = client.change(change, &jobs).await?;
    tell(change, &verdicts, arguments.display.output)?;
    Ok(verdicts.iter().find_map(refusal).map_or(ExitCode::SUCCESS, |failure| failure.exit_code()))
}

/// The refusals are told already, so all that is left of them is a code.
fn refusal((_, verdict): &(JobId, ChangeResult)) -> Option<CommandError> {
    match verdict {
        ChangeResult::Done | ChangeResult::Already => None,
        ChangeResult::Refused(refusal) => Some(refusal.clone().into()),
    }
}

fn tell(
    change: JobChange,
    verdicts: &[(JobId, ChangeResult)],
    format: OutputFormat,
) -> Result<(), CommandError> {
    if format == OutputFormat::Json {
        let changes =
            verdicts.iter().map(|(job, verdict)| ChangeDocument::new(change, *job, verdict)).collect();
        return output::print_document(&with_schema(ChangeListDocument { changes }));
    }
    for (job, verdict) in verdicts {
        let sentence = changes::verdict(change, *job, verdict);
        match (verdict, format) {
            (ChangeResult::Refused(_), _) => output::print_message(&format!("error: {sentence}")),
            (ChangeResult::Done, OutputFormat::Quiet) => output::print_text(&job.to_string())?,
            (ChangeResult::Already, OutputFormat::Quiet) => {}
            (ChangeResult::Done | ChangeResult::Already, _) => output::print_text(&sentence)?,
        }
    }
    Ok(())
}
