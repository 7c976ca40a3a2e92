//! `show`: shows jobs in full. The document of one job is the job; that of several is a list.

use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_client::types::{JobId, UsageRecord};
use cohabit_console::{CommandError, output, with_schema};
use jiff::tz::TimeZone;

use super::job_reference::resolve;
use crate::arguments::{OutputFormat, ShowArguments};
use crate::clock::now;
use crate::endpoint::connect;
use crate::render::job_sheet::job_sheet;
use crate::render::usage_documents::{ShownJobDocument, ShownJobListDocument};

pub(super) async fn show(arguments: ShowArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let ids = resolve(&client, &arguments.jobs.references).await?;
    let jobs = client.show(&ids).await?;
    let usage = usage_of(&client, &ids, arguments.display.output).await?;
    match (arguments.display.output, jobs.as_slice()) {
        (OutputFormat::Json, [job]) => {
            output::print_document(&with_schema(ShownJobDocument::new(job, &usage)))?
        }
        (OutputFormat::Json, jobs) => output::print_document(&with_schema(ShownJobListDocument {
            jobs: jobs.iter().map(|job| ShownJobDocument::new(job, &usage)).collect(),
        }))?,
        (OutputFormat::Quiet, jobs) => {
            jobs.iter().try_for_each(|job| output::print_text(&job.id.to_string()))?
        }
        (OutputFormat::Table | OutputFormat::Wide, jobs) => {
            let sheet = |job| job_sheet(job, &usage, now(), &TimeZone::system());
            let sheets: Vec<_> = jobs.iter().map(sheet).collect();
            output::print_text(&sheets.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The most jobs of one question to the head.
const MOST_AT_ONCE: usize = 256;

/// What these jobs did with their GPUs, where the output tells it.
pub(super) async fn usage_of(
    client: &Client,
    jobs: &[JobId],
    format: OutputFormat,
) -> Result<Vec<UsageRecord>, CommandError> {
    let mut usage = Vec::new();
    if matches!(format, OutputFormat::Quiet) {
        return Ok(usage);
    }
    for some in jobs.chunks(MOST_AT_ONCE) {
        usage.extend(client.usage(some.to_vec()).await?);
    }
    Ok(usage)
}
