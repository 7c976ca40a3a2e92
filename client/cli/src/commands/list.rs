//! `list`: lists jobs, one line for each.

use std::process::ExitCode;

use cohabit_client::types::{Filter, JobRecord, Span};
use cohabit_console::{CommandError, Screen, output, with_schema};
use jiff::tz::TimeZone;

use super::job_reference::resolve_one;
use crate::arguments::{ListArguments, OutputFormat};
use crate::clock::now;
use crate::endpoint::connect;
use crate::render::jobs_table::{ColumnSet, jobs_table};
use cohabit_documents::jobs::{JobDocument, JobListDocument};

/// How long ended jobs are listed without --all.
pub(super) const LISTED_FOR: Span = Span::from_secs(86_400);

pub(super) async fn list(arguments: ListArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection()).await?;
    let members_of = match &arguments.members_of {
        Some(reference) => Some(resolve_one(&client, reference).await?.number),
        None => None,
    };
    let filter = Filter {
        states: arguments.states(),
        ended_after: (!arguments.all).then(|| now() - LISTED_FOR),
        user: arguments.user,
        name: arguments.name,
        members_of,
        ..Filter::default()
    };
    let listed = client.list_all(filter).await?;
    print_result(&listed, arguments.display.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints jobs in the given format.
pub(super) fn print_result(jobs: &[JobRecord], format: OutputFormat) -> Result<(), CommandError> {
    let table = |columns| jobs_table(jobs, columns, now(), &TimeZone::system(), Screen::of_stdout());
    match format {
        OutputFormat::Table => output::print_text(&table(ColumnSet::Usual)),
        OutputFormat::Wide => output::print_text(&table(ColumnSet::Wide)),
        OutputFormat::Json => output::print_document(&with_schema(JobListDocument {
            jobs: jobs.iter().map(JobDocument::from).collect(),
        })),
        OutputFormat::Quiet => jobs.iter().try_for_each(|job| output::print_text(&job.id.to_string())),
    }
}
