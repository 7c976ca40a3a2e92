//! `shell`, `run --pty` and `attach`: a job with a terminal, and this terminal in its place.
//!
//! The job outlives the session. Only while it waits to start does Ctrl-C cancel it: then nobody else has it.

use std::process::ExitCode;
use std::time::Duration;

use cohabit_client::types::{JobChange, JobId, JobInput, JobPhase, JobRecord, JobState, LogPosition};
use cohabit_client::{Client, JobHandle};
use cohabit_console::{CommandError, CommandErrorKind, output};
use futures::TryStreamExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::job_reference::resolve_one;
use super::terminal::{TerminalEnd, TerminalOwner, check_terminal, connect_terminal, own_size};
use super::{dry_run, submission};
use crate::arguments::{AttachArguments, ShellArguments, SubmissionArguments};
use crate::endpoint::connect_to_stay;
use crate::process::exit_code;
use crate::script::Script;

/// A job that starts within this time says nothing of its wait.
const UNMENTIONED_WAIT: Duration = Duration::from_secs(1);

pub(super) async fn shell(arguments: ShellArguments) -> Result<ExitCode, CommandError> {
    run_with_terminal("cohabit shell", arguments.into(), None).await
}

/// Submits the job with a terminal, waits until it runs, and connects this terminal with it.
pub(super) async fn run_with_terminal(
    command: &str,
    arguments: SubmissionArguments,
    script: Option<Script>,
) -> Result<ExitCode, CommandError> {
    let (format, is_dry) = (arguments.display.output, arguments.dry_run);
    if !is_dry {
        check_terminal(command, "cohabit run -- COMMAND, which also passes standard input on")?;
    }
    let client = connect_to_stay(&arguments.connection).await?;
    let input = JobInput::Terminal(own_size());
    let prepared = submission::prepare(&client, arguments, script, input).await?;
    if is_dry {
        return dry_run::dry_run(&client, &prepared.submission, format).await;
    }
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot handle Ctrl-C: {error}"))
    })?;
    let job = prepared.submit(&client).await?;
    output::print_message(&format!("job {} submitted", job.id()));
    tokio::select! {
        waited = wait_for_start(&job) => drop(waited?),
        _ = interrupts.recv() => return cancel(&client, job.id()).await,
    }
    match connect_terminal(&client, TerminalOwner::Job(job.id()), LogPosition::Start).await {
        Ok(end) => finish(&job, end).await,
        // Nobody could ever type there.
        Err(error) if matches!(error.kind, CommandErrorKind::Impossible(_)) => {
            client.change(JobChange::Cancel, &[job.id()]).await?;
            let message = format!("job {} is cancelled: {}", job.id(), error.message);
            Err(CommandError::new(error.kind, message))
        }
        Err(error) => Err(error),
    }
}

pub(super) async fn attach(arguments: AttachArguments) -> Result<ExitCode, CommandError> {
    check_terminal("cohabit attach", "cohabit logs -f JOB")?;
    let client = connect_to_stay(&arguments.connection).await?;
    let job = client.job(resolve_one(&client, &arguments.job).await?);
    let record = wait_for_start(&job).await?;
    if record.state.is_terminal() {
        let message = format!(
            "job {} has ended ({}): see its output with cohabit logs {}",
            job.id(),
            record.state,
            job.id()
        );
        return Err(CommandError::new(CommandErrorKind::Impossible("wrong_state"), message));
    }
    // What was printed last stands on the screen again.
    let from = LogPosition::Tail(u64::from(own_size().rows));
    let end = connect_terminal(&client, TerminalOwner::Job(job.id()), from).await?;
    finish(&job, end).await
}

/// Waits until the job runs or has ended, and says why it waits.
pub(super) async fn wait_for_start(job: &JobHandle) -> Result<JobRecord, CommandError> {
    let (mut records, mut said, mut latest) = (job.watch(), None, job.record().await?);
    while latest.state.phase() == JobPhase::Waiting {
        match timeout(UNMENTIONED_WAIT, records.try_next()).await {
            Ok(Ok(Some(record))) => latest = record,
            Ok(Ok(None)) => break,
            Ok(Err(error)) => return Err(error.into()),
            Err(_) if said == Some(latest.reason_code) => {}
            Err(_) => {
                said = Some(latest.reason_code);
                output::print_message(&format!("job {} waits: {}", job.id(), latest.reason));
            }
        }
    }
    Ok(latest)
}

pub(super) async fn cancel(client: &Client, job: JobId) -> Result<ExitCode, CommandError> {
    client.change(JobChange::Cancel, &[job]).await?;
    Err(CommandError::new(CommandErrorKind::Interrupted, format!("interrupted: job {job} was cancelled")))
}

/// Exits as the job did, if it has ended.
async fn finish(job: &JobHandle, end: TerminalEnd) -> Result<ExitCode, CommandError> {
    let id = job.id();
    match end {
        TerminalEnd::Detached => {
            output::print_message(&format!("detached from job {id}, which goes on: cohabit attach {id}"));
            Ok(ExitCode::SUCCESS)
        }
        TerminalEnd::Ended(_) => {
            let ended = job.wait().await?;
            if ended.state != JobState::Completed {
                output::print_message(&format!("job {id} {}: {}", ended.state, ended.reason));
            }
            Ok(exit_code(ended.shell_code().unwrap_or(0)))
        }
    }
}
