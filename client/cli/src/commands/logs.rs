//! `logs`: shows what a job printed, and with `--follow` what it goes on to print.

use std::process::ExitCode;

use cohabit_client::proto::{AtEnd, JobId, JobRef, LogPosition, LogRecord, LogStream};
use cohabit_client::{Client, LogOptions, LogPart};
use futures::TryStreamExt as _;
use serde::Serialize;

use crate::arguments::{Format, LogsArguments};
use crate::connect::connect;
use crate::failure::{Failure, Trouble};
use crate::output;
use crate::render::documents::versioned;
use crate::render::moment;

pub(super) async fn logs(arguments: LogsArguments) -> Result<ExitCode, Failure> {
    let client = connect(&arguments.connection).await?;
    let job = one(&client, &arguments.job).await?;
    let options = LogOptions {
        rank: arguments.rank,
        attempt: arguments.attempt,
        from: arguments.tail.map_or(LogPosition::Start, LogPosition::Tail),
        at_end: if arguments.follow { AtEnd::Wait } else { AtEnd::Return },
    };
    let mut parts = client.log_parts(job, options);
    while let Some(part) = parts.try_next().await? {
        match arguments.display.output {
            Format::Json => print_lines(&part)?,
            Format::Table | Format::Wide | Format::Quiet => print(&part)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The one job that this reference means.
pub(super) async fn one(client: &Client, reference: &JobRef) -> Result<JobId, Failure> {
    match client.resolve(std::slice::from_ref(reference)).await?.as_slice() {
        [job] => Ok(*job),
        jobs => Err(Failure::new(
            Trouble::Impossible("ambiguous"),
            format!("'{reference}' means {} jobs: name one", jobs.len()),
        )),
    }
}

/// The bytes as the job printed them, each stream to its own.
pub(super) fn print(part: &LogPart) -> Result<(), Failure> {
    if part.chunk.dropped > 0 {
        output::message(&format!("[{} bytes of output are no longer kept]", part.chunk.dropped));
    }
    for record in &part.chunk.records {
        output::bytes(record.stream, &record.bytes)?;
    }
    Ok(())
}

/// What was printed at once, as a line of JSON.
#[derive(Debug, Serialize)]
struct Line {
    attempt: u32,
    rank: u32,
    stream: LogStream,
    at: String,
    text: String,
}

fn print_lines(part: &LogPart) -> Result<(), Failure> {
    let line = |record: &LogRecord| Line {
        attempt: part.rank.attempt.attempt,
        rank: part.rank.rank,
        stream: record.stream,
        at: moment(record.at),
        text: String::from_utf8_lossy(&record.bytes).into_owned(),
    };
    part.chunk.records.iter().try_for_each(|record| output::line(&versioned(line(record))))
}
