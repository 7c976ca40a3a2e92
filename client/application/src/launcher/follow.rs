//! Shows what a `main` prints, and passes on its exit code.

use std::convert::Infallible;
use std::time::Duration;

use cohabit_client::{Client, LogOptions};
use cohabit_types::{
    Entrypoint, Filter, JobId, JobPhase, JobRecord, JobState, LogRecord, LogStream, ReasonCode, RunnerRole,
    RunnerWork,
};
use futures::TryStreamExt;
use tokio::io::{AsyncWriteExt, stderr, stdout};
use tokio::time::sleep;

use super::absence::tell_absences;
use super::launched::{FAILED, LaunchEnd, LaunchFailure, Launched};
use crate::terminal::say;

/// Pauses before the head is asked again for a main that is not there yet.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Pause before it is said why a main waits, and before that is looked at again.
const WAIT_PAUSE: Duration = Duration::from_secs(2);

/// The exit code of a job whose record tells none.
const UNKNOWN_CODE: i32 = 125;

/// Follows what was launched to its end.
pub(super) async fn follow(client: &Client, launched: Launched) -> Result<LaunchEnd, LaunchFailure> {
    match launched {
        Launched::Main(main) => follow_joined(client, main).await,
        Launched::Root(root) => follow_root(client, root).await.map(LaunchEnd::Ended),
    }
}

/// Follows a main in an application that ran already.
async fn follow_joined(client: &Client, main: JobId) -> Result<LaunchEnd, LaunchFailure> {
    let ended = follow_main(client, main).await?;
    let (ReasonCode::ApplicationEnded, Some(root)) = (ended.reason_code, ended.application) else {
        return Ok(LaunchEnd::Ended(end_of_main(&ended)));
    };
    let root = client.job(root).record().await?;
    if root.state == JobState::Completed {
        // By itself it does not end before a main has that it has let in.
        return Ok(LaunchEnd::NotBegun);
    }
    Ok(LaunchEnd::Ended(end_of_root(&root)))
}

/// Follows the first main of an application; returns its exit code.
async fn follow_root(client: &Client, root: JobId) -> Result<i32, LaunchFailure> {
    let mut last = None;
    loop {
        let Some(main) = find_main(client, root, last).await? else {
            let ended = client.job(root).record().await?;
            say(&format!("application {root} ended before its main began: {}{}", ended.reason, more(root)));
            return Ok(ended.shell_code().filter(|code| *code != 0).unwrap_or(FAILED));
        };
        let ended = follow_main(client, main).await?;
        if ended.reason_code != ReasonCode::ApplicationEnded {
            return Ok(end_of_main(&ended));
        }
        let record = client.job(root).record().await?;
        if record.state.is_terminal() {
            return Ok(end_of_root(&record));
        }
        say(&format!("application {root} starts anew{}", last_end(&record)));
        last = Some(main);
    }
}

/// The first main of an application after this one; none if the application ended without. The head names the
/// mains of applications that live; of one that has ended they are found among all jobs.
async fn find_main(
    client: &Client,
    root: JobId,
    after: Option<JobId>,
) -> Result<Option<JobId>, LaunchFailure> {
    let (mut pause, mut told) = (FIRST_PAUSE, String::new());
    loop {
        let after = after.unwrap_or(root);
        let live = client.applications().await?.into_iter().find(|it| it.job == root);
        let mains = live.map(|it| it.mains).unwrap_or_default();
        if let Some(main) = mains.into_iter().find(|main| *main > after) {
            return Ok(Some(main));
        }
        let record = client.job(root).record().await?;
        if record.state.is_terminal() {
            let filter = Filter { after: Some(after), ..Filter::default() };
            let jobs = client.list(filter).try_filter(|job| std::future::ready(is_main(job, root)));
            return Ok(Box::pin(jobs).try_next().await?.map(|main| main.id));
        }
        if pause == LONGEST_PAUSE && record.reason != told {
            say(&format!("application {root} is {}: {}", record.state, record.reason));
            told = record.reason;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether a job is a main of the application: its title says so.
fn is_main(job: &JobRecord, root: JobId) -> bool {
    let work = RunnerWork {
        application: root.attempt(1),
        program: String::new(),
        role: RunnerRole::Main,
        arguments: Vec::new(),
        node: None,
        ranks: 1,
    };
    job.application == Some(root) && job.work == Entrypoint::Runner(work).title()
}

/// Shows what a main prints until it has ended, and why it waits; returns its last record.
async fn follow_main(client: &Client, main: JobId) -> Result<JobRecord, LaunchFailure> {
    let end = async {
        show_output(client, main).await;
        client.job(main).wait().await
    };
    tokio::select! {
        ended = end => Ok(ended?),
        never = tell_waits(client, main) => match never? {},
    }
}

/// Says why a main waits, and later when its node is away. Never returns but for an error.
async fn tell_waits(client: &Client, main: JobId) -> Result<Infallible, LaunchFailure> {
    let mut told = String::new();
    loop {
        sleep(WAIT_PAUSE).await;
        let record = client.job(main).record().await?;
        if record.state.phase() != JobPhase::Waiting {
            return Ok(tell_absences(client, main).await?);
        }
        if record.reason != told {
            say(&format!("main, job {main}, is {}: {}", record.state, record.reason));
            told = record.reason;
        }
    }
}

async fn show_output(client: &Client, main: JobId) {
    let mut output = client.logs(main, LogOptions::follow());
    loop {
        match output.try_next().await {
            Ok(Some(record)) => show(&record).await,
            Ok(None) => break,
            Err(error) => {
                say(&format!("the output of job {main} cannot be read: {error}"));
                break;
            }
        }
    }
}

/// Whoever closes our output does not want to see more.
async fn show(record: &LogRecord) {
    let _shown = match record.stream {
        LogStream::Stdout => write(stdout(), &record.bytes).await,
        LogStream::Stderr => write(stderr(), &record.bytes).await,
    };
}

async fn write(mut to: impl AsyncWriteExt + Unpin, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

/// Says how a main ended that ended by itself; returns its exit code. One that has exited has said why.
fn end_of_main(ended: &JobRecord) -> i32 {
    let main = ended.id;
    if !matches!(ended.reason_code, ReasonCode::Completed | ReasonCode::ExitCode) {
        say(&format!("main, job {main}, has ended: {}{}", ended.reason, more(main)));
    }
    ended.shell_code().unwrap_or(UNKNOWN_CODE)
}

/// Says how an application ended, and its main with it; returns the exit code. That of a job that was
/// cancelled means Ctrl-C: an application that failed has another one.
fn end_of_root(root: &JobRecord) -> i32 {
    let JobRecord { id, name, reason, .. } = root;
    let code = root.shell_code().filter(|code| *code != 0).unwrap_or(FAILED);
    let text = if root.state == JobState::Cancelled {
        format!("application '{name}', job {id}, has ended: {reason}")
    } else {
        let more = more(*id);
        format!("application '{name}' has ended with its coordinator, job {id}: {reason}{more}")
    };
    say(&text);
    code
}

/// How the last attempt of an application ended.
fn last_end(root: &JobRecord) -> String {
    let ended = root.attempts.iter().rev().find(|attempt| attempt.ended_at.is_some());
    let outcome = ended.and_then(|attempt| attempt.ranks.first()?.outcome.as_ref());
    outcome.map_or(String::new(), |outcome| format!(": its coordinator {outcome}"))
}

/// Where to read on.
fn more(job: JobId) -> String {
    format!("; `cohabit explain {job}` says more")
}
