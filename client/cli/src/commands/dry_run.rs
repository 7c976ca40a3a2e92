//! `--dry-run`: checks a job as its submission would be, and shows where it would go, beside whom and at what
//! cost. Submits nothing.

mod fitting;
mod plan;
#[cfg(test)]
mod tests;
mod words;

use std::process::ExitCode;

use cohabit_client::{Client, Submission};
use cohabit_console::{CommandError, output, with_schema};
use jiff::tz::TimeZone;

use crate::arguments::OutputFormat;
use fitting::fitting_nodes;
use plan::DryRunDocument;
use words::words;

pub(super) async fn dry_run(
    client: &Client,
    submission: &Submission,
    format: OutputFormat,
) -> Result<ExitCode, CommandError> {
    let spec = submission.spec();
    let consideration = client.dry_run(submission).await?;
    let fitting = fitting_nodes(&spec.demand, &client.nodes().await?);
    match format {
        OutputFormat::Json => {
            output::print_document(&with_schema(DryRunDocument::new(
                spec,
                submission.key(),
                fitting,
                &consideration,
            )))?;
        }
        OutputFormat::Quiet => {}
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&words(spec, &fitting, &consideration, &TimeZone::system()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
