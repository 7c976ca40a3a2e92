//! `show`: all there is to tell about jobs; one document for one job, a list of them for several.

use std::process::ExitCode;

use jiff::tz::TimeZone;

use super::now;
use crate::arguments::{Format, ShowArguments};
use crate::connect::connect;
use crate::failure::Failure;
use crate::output;
use crate::render::documents::{Job, Jobs, versioned};
use crate::render::job_sheet::job_sheet;

pub(super) async fn show(arguments: ShowArguments) -> Result<ExitCode, Failure> {
    let client = connect(&arguments.connection).await?;
    let ids = client.resolve(&arguments.jobs.references).await?;
    let jobs = client.show(&ids).await?;
    match (arguments.display.output, jobs.as_slice()) {
        (Format::Json, [job]) => output::document(&versioned(Job::from(job)))?,
        (Format::Json, jobs) => {
            output::document(&versioned(Jobs { jobs: jobs.iter().map(Job::from).collect() }))?
        }
        (Format::Quiet, jobs) => jobs.iter().try_for_each(|job| output::data(&job.id.to_string()))?,
        (Format::Table | Format::Wide, jobs) => {
            let sheets: Vec<_> = jobs.iter().map(|job| job_sheet(job, now(), &TimeZone::system())).collect();
            output::data(&sheets.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
