//! `--dry-run`: checks a job and shows where it would run, beside which jobs, and how much they would slow
//! each other down. Nothing is submitted.

mod document;
mod fitting_nodes;
#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;

use cohabit_client::{Client, Submission};
use cohabit_console::{CommandError, output, with_schema};
use jiff::tz::TimeZone;

use self::document::DryRunDocument;
use self::fitting_nodes::fitting_nodes;
use self::text::describe_dry_run;
use crate::arguments::OutputFormat;

pub(super) async fn dry_run(
    client: &Client,
    submission: &Submission,
    format: OutputFormat,
) -> Result<ExitCode, CommandError> {
    let spec = submission.spec();
    let dry_run = client.dry_run(submission).await?;
    let fitting = fitting_nodes(&spec.demand, &client.nodes().await?);
    match format {
        OutputFormat::Json => {
            output::print_document(&with_schema(DryRunDocument::new(
                spec,
                submission.key(),
                fitting,
                &dry_run,
            )))?;
        }
        OutputFormat::Quiet => {}
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&describe_dry_run(spec, &fitting, &dry_run, &TimeZone::system()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
