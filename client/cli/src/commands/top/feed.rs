//! Asks the head for what `top` shows, beside the loop that handles keys: a slow head delays no key.

use std::time::Duration;

use cohabit_client::types::{ChangeResult, Filter, FollowMode, JobChange, JobId, LogPosition};
use cohabit_client::{Client, LogOptions, LogPart};
use cohabit_console::CommandError;
use futures::TryStreamExt as _;
use jiff::tz::TimeZone;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use super::view::TopView;
use crate::clock::now;
use crate::render::change_results::describe_change_result;
use crate::render::job_sheet::job_sheet;

/// Time between questions.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// How many of the latest lines of the output are shown first.
const TAIL: u64 = 1_000;

/// An answer of the head, or why there is none.
#[derive(Debug)]
pub(super) enum TopNews {
    View(Box<TopView>),
    ViewFailed(String),
    Sheet(JobId, Vec<String>),
    Output(LogPart),
    /// Nothing more comes from this rank, and why not.
    OutputEnded(JobId, u32, String),
    /// What came of a change.
    Changed(String),
}

/// All nodes, what keeps the head from its work, and the jobs that have not ended.
pub(super) async fn fetch_view(client: &Client) -> Result<TopView, CommandError> {
    let nodes = client.nodes().await?;
    let head_problems = client.head_problems().await?;
    let at = now();
    let jobs = client.list_all(Filter { ended_after: Some(at), ..Filter::default() }).await?;
    let jobs = jobs.into_iter().filter(|job| !job.state.is_terminal()).collect();
    Ok(TopView { head: client.head().to_owned(), at, head_problems, nodes, jobs, failure: None })
}

/// Sends the overview again and again, until nobody receives it.
pub(super) async fn send_views(client: Client, to: Sender<TopNews>) {
    // Each question is tried once: the banner says that one has failed, and the next follows.
    let client = client.with_retry_timeout(Duration::ZERO);
    loop {
        sleep(PERIOD).await;
        let news = match fetch_view(&client).await {
            Ok(view) => TopNews::View(Box::new(view)),
            Err(error) => TopNews::ViewFailed(error.message),
        };
        if to.send(news).await.is_err() {
            return;
        }
    }
}

/// Sends the sheet of a job again and again, until nobody receives it.
pub(super) async fn send_sheets(client: Client, job: JobId, to: Sender<TopNews>) {
    let client = client.with_retry_timeout(Duration::ZERO);
    loop {
        let lines = fetch_sheet(&client, job).await.unwrap_or_else(|error| vec![error.message]);
        if to.send(TopNews::Sheet(job, lines)).await.is_err() {
            return;
        }
        sleep(PERIOD).await;
    }
}

/// Why the job waits or how it ended, and its properties.
async fn fetch_sheet(client: &Client, job: JobId) -> Result<Vec<String>, CommandError> {
    let explanation = client.explain(job).await?;
    let record = client.job(job).record().await?;
    // The sheet is worth showing without it.
    let usage = client.usage(vec![record.id]).await.unwrap_or_default();
    let sheet = job_sheet(&record, &usage, now(), &TimeZone::system());
    let sentences = explanation.sentences.into_iter().chain([String::new()]);
    Ok(sentences.chain(sheet.lines().map(str::to_owned)).collect())
}

/// Sends the output of a rank until the job has ended, or nobody receives it.
pub(super) async fn send_output(client: Client, job: JobId, rank: u32, to: Sender<TopNews>) {
    let options = LogOptions { rank, attempt: None, from: LogPosition::Tail(TAIL), at_end: FollowMode::Wait };
    let mut parts = client.log_parts(job, options);
    let end = loop {
        match parts.try_next().await {
            Ok(Some(part)) => {
                if to.send(TopNews::Output(part)).await.is_err() {
                    return;
                }
            }
            Ok(None) => break "end of the output".to_owned(),
            Err(error) => break CommandError::from(error).message,
        }
    };
    // Without a receiver, the end is of interest to nobody.
    let _ = to.send(TopNews::OutputEnded(job, rank, end)).await;
}

/// Cancels a job, and sends what came of it.
pub(super) async fn cancel(client: Client, job: JobId, to: Sender<TopNews>) {
    let sentence = match client.change(JobChange::Cancel, &[job]).await {
        Ok(results) => results.first().map_or_else(
            || format!("the head says nothing of job {job}"),
            |(job, result): &(JobId, ChangeResult)| describe_change_result(JobChange::Cancel, *job, result),
        ),
        Err(error) => format!("cannot cancel job {job}: {}", CommandError::from(error).message),
    };
    let _ = to.send(TopNews::Changed(sentence)).await;
}
