//! `--dry-run`: checks a job as its submission would be, and shows where it would go, beside whom and at what
//! cost. Submits nothing.

mod fitting;
mod plan;
#[cfg(test)]
mod tests;
mod words;

use std::process::ExitCode;

use cohabit_client::{Client, Submission};
use jiff::tz::TimeZone;

use crate::arguments::Format;
use crate::failure::Failure;
use crate::output;
use crate::render::documents::versioned;
use fitting::fitting_nodes;
use plan::Plan;
use words::words;

pub(super) async fn dry_run(
    client: &Client,
    submission: &Submission,
    format: Format,
) -> Result<ExitCode, Failure> {
    let spec = submission.spec();
    let consideration = client.consider(submission).await?;
    let fitting = fitting_nodes(&spec.demand, &client.nodes().await?);
    match format {
        Format::Json => {
            output::document(&versioned(Plan::new(spec, submission.key(), fitting, &consideration)))?;
        }
        Format::Quiet => {}
        Format::Table | Format::Wide => {
            output::data(&words(spec, &fitting, &consideration, &TimeZone::system()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
