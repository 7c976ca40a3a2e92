//! `logs` of an application: the output of all its jobs in one, each line with the name of its process.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cohabit_client::types::{
    ApplicationOwner, ApplicationRecord, Entrypoint, FollowMode, JobId, JobRecord, JobRef, LogStream,
};
use cohabit_client::{Client, Error, LogOptions};
use cohabit_console::{CommandError, output, printable_line, with_schema};
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::applications::{children, ended_application, look_for_application};
use super::line_merge::{LineMerge, MergePace, Merged};
use super::log_lines::{OutputLine, lines, records};
use crate::arguments::OutputFormat;
use crate::log_printer::LogPrinter;
use crate::render::rfc3339;

/// How often the head is asked for new jobs of an application that is followed.
const LOOK: Duration = Duration::from_secs(1);

/// The name of the process of a root job.
const COORDINATOR: &str = "coordinator";

/// A job of an application.
#[derive(Debug, Clone)]
struct ProcessName {
    job: JobId,
    name: String,
}

/// A line to print.
#[derive(Debug)]
struct ProcessLine {
    process: Arc<ProcessName>,
    line: OutputLine,
}

/// A line of an application, as one line of JSON.
#[derive(Debug, Serialize)]
struct ProcessLineDocument {
    job: JobId,
    process: String,
    stream: LogStream,
    at: String,
    text: String,
}

/// The root job of an application whose jobs have one log together.
#[derive(Debug, Clone)]
pub(super) struct ApplicationRoot {
    job: JobId,
    user: String,
}

/// The application that a reference names: one that lives, or the root job of one that has ended.
pub(super) async fn find_with_logs(
    client: &Client,
    reference: &JobRef,
) -> Result<Option<ApplicationRoot>, CommandError> {
    if let Ok(ApplicationRecord { job, user, .. }) = look_for_application(client, reference).await? {
        return Ok(Some(ApplicationRoot { job, user }));
    }
    if let Some(error) = ended_application(client, reference, "logs").await? {
        return Err(error);
    }
    let JobRef::Id(job) = reference else { return Ok(None) };
    let record = client.job(*job).record().await?;
    let root = ApplicationRoot { job: record.id, user: record.user };
    // A command may begin with the same word: whether the job is a root shows in its children.
    let may_be_root = record.application.is_none() && Entrypoint::is_application_title(&record.work);
    let is_root = may_be_root && !children(client, root.job, &root.user).await?.is_empty();
    Ok(is_root.then_some(root))
}

/// Prints the output of all jobs of an application.
pub(super) async fn application_logs(
    client: Client,
    root: ApplicationRoot,
    options: LogOptions,
    format: OutputFormat,
) -> Result<ExitCode, CommandError> {
    let mut reader = ApplicationReader::new(client, root, options);
    reader.add_all().await?;
    let writer = LogPrinter::start(move |line: &ProcessLine| match format {
        OutputFormat::Json => print_document(line),
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet => print(line),
    });
    writer.print_all(async || reader.next().await).await?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the output of all jobs of an application.
struct ApplicationReader {
    client: Client,
    root: ApplicationRoot,
    options: LogOptions,
    merge: LineMerge<Error>,
    /// By the number of their outputs.
    processes: Vec<Arc<ProcessName>>,
    known: BTreeSet<JobId>,
    /// When the head is asked for new jobs; none where no more can come.
    next_look: Option<Instant>,
}

impl ApplicationReader {
    fn new(client: Client, root: ApplicationRoot, options: LogOptions) -> ApplicationReader {
        let follows = options.at_end == FollowMode::Wait;
        ApplicationReader {
            client,
            root,
            options,
            merge: LineMerge::new(if follows { MergePace::Followed } else { MergePace::Finished }),
            processes: Vec::new(),
            known: BTreeSet::new(),
            next_look: follows.then(|| Instant::now() + LOOK),
        }
    }

    /// Adds the root and all its children that have run, or may still run if they are followed.
    async fn add_all(&mut self) -> Result<(), CommandError> {
        let root = self.client.job(self.root.job).record().await?;
        self.add(JobRecord { name: COORDINATOR.to_owned(), ..root });
        let children = children(&self.client, self.root.job, &self.root.user).await?;
        children.into_iter().for_each(|child| self.add(child));
        Ok(())
    }

    fn add(&mut self, record: JobRecord) {
        let follows = self.options.at_end == FollowMode::Wait;
        if (record.attempt == 0 && !follows) || !self.known.insert(record.id) {
            return;
        }
        let (client, options, job) = (self.client.clone(), self.options, record.id);
        let begins_at = record.started_at.unwrap_or(record.submitted_at);
        self.merge
            .add(self.processes.len(), begins_at, move || lines(records(client.log_parts(job, options))));
        self.processes.push(Arc::new(ProcessName { job, name: record.name }));
    }

    async fn next(&mut self) -> Result<Option<ProcessLine>, CommandError> {
        loop {
            let next = match self.next_look {
                None => self.merge.next().await,
                Some(at) => tokio::select! {
                    next = self.merge.next() => next,
                    () = sleep_until(at) => {
                        self.look().await?;
                        continue;
                    }
                },
            };
            match next {
                Some(Merged::Line(number, line)) => {
                    let process = Arc::clone(&self.processes[number]);
                    return Ok(Some(ProcessLine { process, line }));
                }
                // Other outputs can still be read where its node is away.
                Some(Merged::Failed(number, Error::Refused(refusal))) => {
                    let job = self.processes[number].job;
                    output::print_message(&format!("[the output of job {job} cannot be read: {refusal}]"));
                }
                Some(Merged::Failed(_, error)) => return Err(error.into()),
                None if self.next_look.is_none() => return Ok(None),
                // All outputs have ended, and so may have the application.
                None => self.look().await?,
            }
        }
    }

    /// Adds new jobs. One that came and went between two looks is found when the application has ended.
    async fn look(&mut self) -> Result<(), CommandError> {
        let live = self.client.applications_of(ApplicationOwner::Anyone).await?;
        match live.into_iter().find(|it| it.job == self.root.job) {
            Some(live) => {
                let new: Vec<JobId> =
                    live.runners.into_iter().filter(|job| !self.known.contains(job)).collect();
                let records = self.client.show(&new).await?;
                records.into_iter().for_each(|record| self.add(record));
                self.next_look = Some(Instant::now() + LOOK);
            }
            None => {
                self.next_look = None;
                self.add_all().await?;
            }
        }
        Ok(())
    }
}

/// Prints a line as it is, after the name of its process: stdout to stdout, stderr to stderr.
fn print(ProcessLine { process, line }: &ProcessLine) -> Result<(), CommandError> {
    let prefix = format!("[{} {}] ", printable_line(&process.name), process.job);
    output::print_bytes(line.stream, &[prefix.as_bytes(), &line.text, b"\n"].concat())
}

fn print_document(ProcessLine { process, line }: &ProcessLine) -> Result<(), CommandError> {
    output::print_line(&with_schema(ProcessLineDocument {
        job: process.job,
        process: process.name.clone(),
        stream: line.stream,
        at: rfc3339(line.at),
        text: String::from_utf8_lossy(&line.text).into_owned(),
    }))
}
