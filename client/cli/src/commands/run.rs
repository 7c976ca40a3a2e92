//! `run`: submits a job, prints its output as it appears, and exits with its exit code.
//!
//! The first Ctrl-C cancels the job and waits until it has ended; the second exits immediately.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::process::ExitCode;

use cohabit_client::types::{JobChange, JobId, JobInput, JobSpec, JobState};
use cohabit_client::{Client, Error, JobHandle, LogOptions};
use cohabit_console::{CommandError, CommandErrorKind, output};
use futures::TryStreamExt as _;
use futures::stream;
use tokio::signal::unix::{SignalKind, signal};

use super::shell::{run_with_terminal, wait_for_start};
use super::{dry_run, logs, own_input, submission};
use crate::arguments::RunArguments;
use crate::endpoint::connect_to_wait;
use crate::log_printer::{LogPrinter, print_message_in_background};
use crate::process::exit_code;
use crate::script::Script;

pub(super) async fn run(arguments: RunArguments, script: Option<Script>) -> Result<ExitCode, CommandError> {
    if arguments.pty {
        return run_with_terminal("cohabit run --pty", arguments.submission, script).await;
    }
    let format = arguments.submission.display.output;
    let is_dry = arguments.submission.dry_run;
    let client = connect_to_wait(&arguments.submission.connection).await?;
    let input = if own_input::is_given() { JobInput::Sent } else { JobInput::Empty };
    let prepared = submission::prepare(&client, arguments.submission, script, input).await?;
    if is_dry {
        return dry_run::dry_run(&client, &prepared.submission, format).await;
    }
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot handle Ctrl-C: {error}"))
    })?;
    let job = prepared.submit(&client).await?;
    output::print_message(&format!("job {} submitted", job.id()));

    let mut followed = pin!(follow_with_input(&client, &job, prepared.submission.spec()));
    tokio::select! {
        ended = &mut followed => return ended,
        never = tell_wait(&job, prepared.submission.spec()) => match never {},
        _ = interrupts.recv() => {}
    }
    print_message_in_background(format!(
        "cancelling job {}; press Ctrl-C again to exit immediately",
        job.id()
    ));
    let cancelled = async {
        client.change(JobChange::Cancel, &[job.id()]).await?;
        followed.await
    };
    let how = tokio::select! {
        ended = cancelled => ended.map(|_| "was cancelled")?,
        _ = interrupts.recv() => "is being cancelled",
    };
    Err(CommandError::new(CommandErrorKind::Interrupted, format!("interrupted: job {} {how}", job.id())))
}

/// Says why the job waits, if it does for more than a moment; never returns.
async fn tell_wait(job: &JobHandle, spec: &JobSpec) -> Infallible {
    // What cannot be known is told by whoever follows the job.
    if spec.array.is_none() {
        let _ = wait_for_start(job).await;
    }
    pending().await
}

/// Follows the job, and sends it what this process reads from its standard input, if the job takes it.
async fn follow_with_input(
    client: &Client,
    job: &JobHandle,
    spec: &JobSpec,
) -> Result<ExitCode, CommandError> {
    if spec.input == JobInput::Empty {
        return follow(client, job, spec).await;
    }
    tokio::select! {
        ended = follow(client, job, spec) => ended,
        Err(error) = own_input::send(client, job.id()) => {
            // What it would make of a part of its input is not what was asked for.
            client.change(JobChange::Cancel, &[job.id()]).await?;
            let message = format!("job {} is cancelled, for its input ended early: {}", job.id(), error.message);
            Err(CommandError::new(error.kind, message))
        }
    }
}

/// Prints the output of the job until it has ended, and then how it ended.
async fn follow(client: &Client, job: &JobHandle, spec: &JobSpec) -> Result<ExitCode, CommandError> {
    match spec.array {
        None => show_output(client, job.id(), spec).await?,
        Some(_) => {
            output::print_message("the output of an array is not shown here: use `cohabit logs -f last`")
        }
    }
    let ended = job.wait().await?;
    if ended.state != JobState::Completed {
        output::print_message(&format!("job {} {}: {}", ended.id, ended.state, ended.reason));
    }
    Ok(exit_code(ended.shell_code().unwrap_or(0)))
}

/// Prints the output of all ranks. If only the output becomes unavailable, the job is still waited for.
async fn show_output(client: &Client, job: JobId, spec: &JobSpec) -> Result<(), CommandError> {
    let of_rank = |rank| client.log_parts(job, LogOptions { rank, ..LogOptions::follow() });
    let mut parts = stream::select_all((0..spec.ranks()).map(of_rank));
    let mut writer = LogPrinter::start(logs::print);
    let failed = loop {
        match parts.try_next().await {
            Ok(Some(part)) => writer.write(part).await?,
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    writer.finish().await?;
    match failed {
        // The head was waited for long enough.
        Some(error @ Error::Unreachable(_)) => return Err(error.into()),
        Some(error) => output::print_message(&format!("the output is no longer available: {error}")),
        None => {}
    }
    Ok(())
}
