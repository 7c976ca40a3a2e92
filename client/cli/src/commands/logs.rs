//! `logs`: prints the output of a job, and with --follow its new output until it has ended. That of all jobs
//! of an application is in `application_logs`, that of arrays and of several jobs in `merged_logs`.

use std::process::ExitCode;

use cohabit_client::types::{FollowMode, LogPosition, LogRecord, LogStream};
use cohabit_client::{LogOptions, LogPart};
use cohabit_console::{CommandError, output, with_schema};
use futures::TryStreamExt as _;
use serde::Serialize;

use super::application_logs::{application_logs, find_with_logs};
use super::job_reference::resolve;
use super::log_lines::missing;
use super::merged_logs::merged_logs;
use crate::arguments::{LogsArguments, OutputFormat};
use crate::endpoint::connect;
use crate::log_printer::LogPrinter;
use crate::render::rfc3339;

pub(super) async fn logs(arguments: LogsArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let format = arguments.display.output;
    let options = LogOptions {
        rank: arguments.rank.unwrap_or(0),
        attempt: arguments.attempt,
        from: arguments.tail.map_or(LogPosition::Start, LogPosition::Tail),
        at_end: if arguments.follow { FollowMode::Wait } else { FollowMode::Return },
    };
    if arguments.rank.is_none()
        && arguments.attempt.is_none()
        && let [only] = arguments.jobs.as_slice()
        && let Some(application) = find_with_logs(&client, only).await?
    {
        return application_logs(client, application, options, format).await;
    }
    let jobs = resolve(&client, &arguments.jobs).await?;
    let job = match jobs.as_slice() {
        [job] if client.job(*job).record().await?.array.is_none() => *job,
        _ => return merged_logs(client, jobs, options, format).await,
    };
    let mut parts = client.log_parts(job, options);
    let mut writer = LogPrinter::start(move |part: &LogPart| match format {
        OutputFormat::Json => print_lines(part),
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet => print(part),
    });
    let ended = loop {
        match parts.try_next().await {
            Ok(Some(part)) => writer.write(part).await?,
            Ok(None) => break Ok(ExitCode::SUCCESS),
            Err(error) => break Err(error.into()),
        }
    };
    writer.finish().await?;
    ended
}

/// Prints the output as it is: stdout to stdout, stderr to stderr.
pub(super) fn print(part: &LogPart) -> Result<(), CommandError> {
    say_missing(part);
    for record in &part.chunk.records {
        output::print_bytes(record.stream, &record.bytes)?;
    }
    Ok(())
}

/// A record of the output, as one line of JSON.
#[derive(Debug, Serialize)]
struct LogLineDocument {
    attempt: u32,
    rank: u32,
    stream: LogStream,
    at: String,
    text: String,
}

/// Says before the output that it has lost its begin.
fn say_missing(part: &LogPart) {
    if part.chunk.dropped > 0 {
        output::print_message(&missing(part.chunk.dropped));
    }
}

fn print_lines(part: &LogPart) -> Result<(), CommandError> {
    say_missing(part);
    let line = |record: &LogRecord| LogLineDocument {
        attempt: part.rank.attempt.attempt,
        rank: part.rank.rank,
        stream: record.stream,
        at: rfc3339(record.at),
        text: String::from_utf8_lossy(&record.bytes).into_owned(),
    };
    part.chunk.records.iter().try_for_each(|record| output::print_line(&with_schema(line(record))))
}
