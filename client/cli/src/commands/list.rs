//! `list`: jobs, a line for each.

use std::process::ExitCode;

use cohabit_client::proto::{Filter, JobRecord, Span};
use jiff::tz::TimeZone;

use super::now;
use crate::arguments::{Format, ListArguments};
use crate::connect::connect;
use crate::failure::Failure;
use crate::output::{self, Screen};
use crate::render::documents::{Job, Jobs, versioned};
use crate::render::jobs_table::{Columns, jobs_table};

/// How long ended jobs are listed without `--all`.
const LISTED_FOR: Span = Span::from_secs(86_400);

pub(super) async fn list(arguments: ListArguments) -> Result<ExitCode, Failure> {
    let client = connect(&arguments.connection()).await?;
    let filter = Filter {
        states: arguments.states(),
        ended_after: (!arguments.all).then(|| now() - LISTED_FOR),
        user: arguments.user,
        name: arguments.name,
        members_of: arguments.members_of,
        ..Filter::default()
    };
    let listed = client.list_all(filter).await?;
    tell(&listed, arguments.display.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Jobs in the form that was asked for.
pub(super) fn tell(jobs: &[JobRecord], format: Format) -> Result<(), Failure> {
    let table = |columns| jobs_table(jobs, columns, now(), &TimeZone::system(), Screen::of_stdout());
    match format {
        Format::Table => output::data(&table(Columns::Usual)),
        Format::Wide => output::data(&table(Columns::Wide)),
        Format::Json => output::document(&versioned(Jobs { jobs: jobs.iter().map(Job::from).collect() })),
        Format::Quiet => jobs.iter().try_for_each(|job| output::data(&job.id.to_string())),
    }
}
