//! `metrics`: shows the metrics that jobs have reported over their steps. They stay with the workers, like
//! logs: those of an attempt on a node that is not connected are left out, with a message.

use std::process::ExitCode;

use cohabit_client::types::{JobId, JobPhase, JobRecord};
use cohabit_client::{Client, Error};
use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, Screen, output, with_schema};
use cohabit_documents::metrics::MetricsDocument;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::job_reference::resolve;
use crate::arguments::MetricsArguments;
use crate::endpoint::connect;
use crate::render::metrics::{AttemptSeries, csv, names, plot, summary};

/// The most jobs and members whose metrics one command reads.
const MOST_JOBS: usize = 10_000;

/// How many ranks are asked at once.
const AT_ONCE: usize = 8;

pub(super) async fn metrics(arguments: MetricsArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let jobs = resolve(&client, &arguments.jobs.references).await?;
    let records = with_members(&client, &jobs).await?;
    let mut all = read(&client, &records, &arguments).await?;
    keep_named(&mut all, &arguments.names)?;
    if all.is_empty() {
        output::print_message(&nothing_reported(&records));
    }
    let screen = Screen::of_stdout();
    match arguments.display.output {
        _ if arguments.csv => output::print_text(&csv(&all)?)?,
        OutputFormat::Json => {
            let series = all.iter().map(|it| (it.rank, &it.series));
            output::print_document(&with_schema(MetricsDocument::new(series)))?
        }
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet if all.is_empty() => {}
        _ if arguments.plot => output::print_text(&plot(&all, screen))?,
        OutputFormat::Quiet => output::print_text(&names(&all).join("\n"))?,
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&summary(&all, screen))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The records of plain jobs, and of the members of arrays.
async fn with_members(client: &Client, jobs: &[JobId]) -> Result<Vec<JobRecord>, CommandError> {
    let mut records = Vec::new();
    for record in client.show(jobs).await? {
        if record.array.is_none() {
            records.push(record);
            continue;
        }
        // A list has no attempts.
        let members: Vec<JobRecord> = client.job(record.id).members().try_collect().await?;
        let started = members.iter().filter(|it| it.attempt > 0).map(|it| it.id).collect::<Vec<_>>();
        records.extend(client.show(&started).await?);
    }
    match records.len() {
        0..=MOST_JOBS => Ok(records),
        count => Err(CommandError::invalid(format!(
            "these are the metrics of {count} jobs: name fewer, at most {MOST_JOBS} with the members of arrays"
        ))),
    }
}

/// The series of all attempts that have one, in the order of the jobs.
async fn read(
    client: &Client,
    records: &[JobRecord],
    arguments: &MetricsArguments,
) -> Result<Vec<AttemptSeries>, CommandError> {
    let attempts = records.iter().flat_map(|record| {
        let wanted = record.attempts.iter().map(|it| it.attempt);
        let wanted = wanted.filter(|number| arguments.attempt.is_none_or(|only| only == *number));
        wanted.map(|number| record.id.attempt(number).rank(arguments.rank.unwrap_or(0)))
    });
    let asked = attempts.map(|rank| async move { (rank, client.metrics(rank).await) });
    let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let (mut all, mut missing) = (Vec::new(), None);
    for (rank, answer) in answers {
        match answer {
            Ok(series) if series.rows.is_empty() => {}
            Ok(series) => all.push(AttemptSeries { rank, series }),
            Err(error @ Error::Refused(_)) => {
                output::print_message(&format!("the metrics of {rank} are missing: {error}"));
                missing = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    match missing {
        Some(error) if all.is_empty() => Err(error.into()),
        _ => Ok(all),
    }
}

/// Leaves out the metrics that were not asked for.
fn keep_named(all: &mut Vec<AttemptSeries>, wanted: &[String]) -> Result<(), CommandError> {
    let known = names(all);
    if let Some(unknown) =
        wanted.iter().find(|name| !known.contains(&name.as_str())).filter(|_| !all.is_empty())
    {
        let known = known.join(", ");
        let message = format!("no metric is named '{unknown}': there are {known}");
        return Err(CommandError::new(CommandErrorKind::Impossible("not_found"), message));
    }
    if !wanted.is_empty() {
        all.iter_mut().for_each(|it| it.keep(wanted));
        all.retain(|it| !it.series.rows.is_empty());
    }
    Ok(())
}

fn nothing_reported(records: &[JobRecord]) -> String {
    match records.iter().all(|it| it.state.phase() == JobPhase::Waiting) {
        true => "nothing has started yet".to_owned(),
        false => "no metrics: a program reports them by writing lines such as {\"step\": 120, \"loss\": 0.41} to the file \
                  that $COHABIT_PROGRESS names, and they are kept as long as its output (log-retention)"
            .to_owned(),
    }
}
