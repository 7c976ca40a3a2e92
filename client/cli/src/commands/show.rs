//! `show`: shows jobs in full. The document of one job is the job; that of several is a list.

use std::process::ExitCode;

use cohabit_console::{CommandError, output, with_schema};
use jiff::tz::TimeZone;

use super::job_reference::resolve;
use crate::arguments::{OutputFormat, ShowArguments};
use crate::clock::now;
use crate::endpoint::connect;
use crate::render::documents::{JobDocument, JobListDocument};
use crate::render::job_sheet::job_sheet;

pub(super) async fn show(arguments: ShowArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let ids = resolve(&client, &arguments.jobs.references).await?;
    let jobs = client.show(&ids).await?;
    match (arguments.display.output, jobs.as_slice()) {
        (OutputFormat::Json, [job]) => output::print_document(&with_schema(JobDocument::from(job)))?,
        (OutputFormat::Json, jobs) => output::print_document(&with_schema(JobListDocument {
            jobs: jobs.iter().map(JobDocument::from).collect(),
        }))?,
        (OutputFormat::Quiet, jobs) => {
            jobs.iter().try_for_each(|job| output::print_text(&job.id.to_string()))?
        }
        (OutputFormat::Table | OutputFormat::Wide, jobs) => {
            let sheets: Vec<_> = jobs.iter().map(|job| job_sheet(job, now(), &TimeZone::system())).collect();
            output::print_text(&sheets.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
