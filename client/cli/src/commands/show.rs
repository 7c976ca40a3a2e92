//! `show`: all there is to tell about jobs; one document for one job, a list of them for several.

use std::process::ExitCode;

use jiff::tz::TimeZone;

use super::now;
use crate::arguments::{OutputFormat, ShowArguments};
use crate::connect::connect;
use crate::failure::CommandError;
use crate::output;
use crate::render::documents::{JobDocument, JobListDocument, with_schema};
use crate::render::job_sheet::job_sheet;

pub(super) async fn show(arguments: ShowArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let ids = client.resolve(&arguments.jobs.references).await?;
    let jobs = client.show(&ids).await?;
    match (arguments.display.output, jobs.as_slice()) {
        (OutputFormat::Json, [job]) => output::document(&with_schema(JobDocument::from(job)))?,
        (OutputFormat::Json, jobs) => output::document(&with_schema(JobListDocument {
            jobs: jobs.iter().map(JobDocument::from).collect(),
        }))?,
        (OutputFormat::Quiet, jobs) => jobs.iter().try_for_each(|job| output::data(&job.id.to_string()))?,
        (OutputFormat::Table | OutputFormat::Wide, jobs) => {
            let sheets: Vec<_> = jobs.iter().map(|job| job_sheet(job, now(), &TimeZone::system())).collect();
            output::data(&sheets.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
