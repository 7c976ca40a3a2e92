//! `notebook`: Jupyter as a job, and a port of this machine that leads to it.
//!
//! The job outlives this command. Its token is drawn on the node and never part of the job: this command asks
//! for it, as whoever may run processes in the job could.

mod jupyter;

use std::process::ExitCode;
use std::time::Duration;

use cohabit_client::types::{JobId, JobPhase, JobRecord, JobSpec, JobState, LogPosition};
use cohabit_client::{Client, JobHandle, LogOptions};
use cohabit_console::{CommandError, CommandErrorKind, output};
use futures::TryStreamExt as _;
use tokio::time::timeout;

use self::jupyter::{JupyterServer, Patience, find_server};
use super::forward::{JobPort, LocalPort};
use super::job_reference::resolve_one;
use super::session_notices::tell_notices;
use super::shell::{cancel, wait_for_start};
use super::submission;
use super::terminal::EndSignals;
use crate::arguments::{NotebookArguments, SubmissionArguments};
use crate::endpoint::connect_to_stay;
use crate::process::exit_code;

/// Lines of the output of a notebook that did not start that are shown.
const LAST_LINES: u64 = 20;
/// How long the end of a job may take to be known here.
const MOMENT: Duration = Duration::from_secs(3);

pub(super) async fn notebook(arguments: NotebookArguments) -> Result<ExitCode, CommandError> {
    let client = connect_to_stay(&arguments.connection).await?;
    let here = LocalPort::bind(arguments.port).await.map_err(|error| {
        let message = format!(
            "cannot listen on 127.0.0.1:{} of this machine: {error}. Name another --port: 0 takes a free one",
            arguments.port
        );
        CommandError::new(CommandErrorKind::InputOutput, message)
    })?;
    let mut signals = EndSignals::new()?;
    let (job, patience) = match &arguments.attach {
        Some(job) => (client.job(resolve_one(&client, job).await?), Patience::Short),
        None => (submit(&client, arguments.into()).await?, Patience::OfTheJob),
    };
    let record = tokio::select! {
        waited = wait_for_start(&job) => waited?,
        _ = signals.recv() => return match patience {
            Patience::OfTheJob => cancel(&client, job.id()).await,
            Patience::Short => Ok(goes_on(job.id())),
        },
    };
    if record.state.phase() == JobPhase::Ended {
        return finish(&job, record).await;
    }
    let rank = job.id().attempt(record.attempt).rank(0);
    let server = tokio::select! {
        found = find_server(&client, rank, patience) => match found {
            Ok(server) => server,
            // The process that looks for it ends with the job, a moment before that is known.
            Err(error) => return match timeout(MOMENT, job.wait()).await {
                Ok(ended) => finish(&job, ended?).await,
                Err(_) => Err(error),
            },
        },
        ended = job.wait() => return finish(&job, ended?).await,
        _ = signals.recv() => return Ok(goes_on(job.id())),
    };
    show(job.id(), &server, here.port())?;
    let to = JobPort { job: job.id(), rank: 0, port: server.port() };
    let ended = tokio::select! {
        ended = here.carry(&client, &job, to) => ended.map(Some),
        never = tell_notices(&job, || true, output::print_message) => match never {},
        _ = signals.recv() => Ok(None),
    };
    here.close(&client).await;
    match ended? {
        Some(ended) => finish(&job, ended).await,
        None => Ok(goes_on(job.id())),
    }
}

async fn submit(client: &Client, arguments: SubmissionArguments) -> Result<JobHandle, CommandError> {
    let prepared =
        submission::prepare_as(client, arguments, None, |spec| JobSpec { interactive: true, ..spec }).await?;
    let spec = prepared.submission.spec();
    if spec.array.is_some() || spec.ranks() != 1 {
        let message = "a notebook is one process: leave out --array, --nodes and --launch";
        return Err(CommandError::new(CommandErrorKind::Usage, message));
    }
    let job = prepared.submit(client).await?;
    output::print_message(&format!("job {} submitted", job.id()));
    Ok(job)
}

/// The address on stdout, and nothing else there.
fn show(job: JobId, server: &JupyterServer, port: u16) -> Result<(), CommandError> {
    if !server.has_token() {
        output::print_message(
            "note: the configuration of Jupyter sets an empty token, so everybody on its node can use this notebook",
        );
    }
    output::print_message(&format!("job {job} runs; Ctrl-C leaves it running"));
    output::print_text(&format!("{}\n", server.url(port)))
}

fn goes_on(job: JobId) -> ExitCode {
    output::print_message(&format!(
        "job {job} goes on. Come back with cohabit notebook --attach {job}; end it with cohabit cancel {job}"
    ));
    ExitCode::SUCCESS
}

/// Exits as the job did; shows what Jupyter said last if it failed.
async fn finish(job: &JobHandle, ended: JobRecord) -> Result<ExitCode, CommandError> {
    if ended.state != JobState::Completed {
        let options = LogOptions { from: LogPosition::Tail(LAST_LINES), ..LogOptions::default() };
        let mut records = job.logs(options);
        while let Ok(Some(record)) = records.try_next().await {
            output::print_message(String::from_utf8_lossy(&record.bytes).trim_end());
        }
    }
    output::print_message(&format!("job {} {}: {}", ended.id, ended.state, ended.reason));
    Ok(exit_code(ended.shell_code().unwrap_or(0)))
}
