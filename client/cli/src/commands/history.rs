//! `history`: the newest jobs of this user, the newest last, with their commands, times and exit codes.

use std::collections::VecDeque;
use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_client::types::{Filter, JobRecord, Span, Time};
use cohabit_console::{CommandError, OutputFormat, Screen, output, with_schema};
use futures::TryStreamExt as _;
use jiff::tz::TimeZone;

use super::list::LISTED_FOR;
use crate::arguments::HistoryArguments;
use crate::clock::now;
use crate::endpoint::connect;
use crate::render::history_table::history_table;
use cohabit_documents::jobs::{JobDocument, JobListDocument};

/// Most people look for a job of the last weeks: more is read only where there are too few.
const RECENT: Span = Span::from_secs(30 * 86_400);

pub(super) async fn history(arguments: HistoryArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let now = now();
    let (limit, submitted_after) = (arguments.limit as usize, arguments.since.map(|since| now - since));
    let windows = match submitted_after {
        Some(after) => vec![Some(after)],
        None => vec![Some(now - LISTED_FOR), Some(now - RECENT), None],
    };
    let mut jobs = Vec::new();
    for window in windows {
        jobs = newest(&client, limit, window, submitted_after).await?;
        if jobs.len() >= limit {
            break;
        }
    }
    match arguments.display.output {
        OutputFormat::Json => output::print_document(&with_schema(JobListDocument {
            jobs: jobs.iter().map(JobDocument::from).collect(),
        }))?,
        OutputFormat::Quiet => jobs.iter().try_for_each(|job| output::print_text(&job.id.to_string()))?,
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&history_table(&jobs, &TimeZone::system(), Screen::of_stdout()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest of the user's jobs that live, or ended after a time, and were submitted after another one.
async fn newest(
    client: &Client,
    limit: usize,
    ended_after: Option<Time>,
    submitted_after: Option<Time>,
) -> Result<Vec<JobRecord>, CommandError> {
    let user = Some(client.accepted().await?.by.user);
    let mut all = client.list(Filter { user, ended_after, ..Filter::default() });
    let mut kept = VecDeque::new();
    while let Some(job) = all.try_next().await? {
        if submitted_after.is_some_and(|after| job.submitted_at < after) {
            continue;
        }
        if kept.len() == limit {
            kept.pop_front();
        }
        kept.push_back(job);
    }
    Ok(kept.into())
}
