//! `logs` of several jobs, or of an array: the output of all in one, each line with the id of its job.
//!
//! Jobs are added as they start. A limited number of outputs is open at once: further jobs are added when
//! others have ended, and where jobs are followed, a message says so.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use cohabit_client::types::{Filter, FollowMode, JobId, JobRecord, JobState, LogStream, Span, Time, counted};
use cohabit_client::{Client, Error, LogOptions};
use cohabit_console::output::Colour;
use cohabit_console::{CommandError, output, with_schema};
use futures::TryStreamExt as _;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::line_merge::{LineMerge, MergePace, Merged};
use super::log_lines::{OutputLine, lines, records};
use crate::arguments::OutputFormat;
use crate::clock::now;
use crate::log_printer::LogPrinter;
use crate::render::rfc3339;

/// The most outputs that are open at once.
const MOST_OPEN: usize = 64;

/// How often the head is asked for jobs that have started.
const LOOK: Duration = Duration::from_secs(1);

/// How far the clocks of the head and of this machine may differ.
const CLOCK_SKEW: Span = Span::from_secs(300);

/// The colors of the ids: cyan, yellow, green, magenta, blue, red.
const COLORS: [u8; 6] = [36, 33, 32, 35, 34, 31];

/// A line to print.
#[derive(Debug)]
struct JobLine {
    job: JobId,
    line: OutputLine,
}

/// A line of one of several jobs, as one line of JSON.
#[derive(Debug, Serialize)]
struct JobLineDocument {
    job: JobId,
    stream: LogStream,
    at: String,
    text: String,
}

/// Prints the output of these jobs, of arrays that of all members.
pub(super) async fn merged_logs(
    client: Client,
    jobs: Vec<JobId>,
    options: LogOptions,
    format: OutputFormat,
) -> Result<ExitCode, CommandError> {
    let mut reader = MergedReader::new(client, jobs, options);
    reader.look().await?;
    let writer = LogPrinter::start(move |line: &JobLine| match format {
        OutputFormat::Json => print_document(line),
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet => {
            output::print_bytes(line.line.stream, &printed(line, Colour::of(line.line.stream)))
        }
    });
    writer.print_all(async || reader.next().await).await?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the output of several jobs.
struct MergedReader {
    client: Client,
    /// Jobs and arrays that were named.
    named: Vec<JobId>,
    options: LogOptions,
    merge: LineMerge<Error>,
    /// By the number of their outputs.
    opened: Vec<JobId>,
    /// Those that are to be added, by the time at which they began.
    waiting: BTreeMap<(Time, JobId), JobState>,
    known: BTreeSet<JobId>,
    /// Members that ended after this time may be new.
    looked_at: Option<Time>,
    /// When the head is asked for jobs that have started; none where no more can come.
    next_look: Option<Instant>,
    has_told_limit: bool,
}

impl MergedReader {
    fn new(client: Client, named: Vec<JobId>, options: LogOptions) -> MergedReader {
        let follows = options.at_end == FollowMode::Wait;
        MergedReader {
            client,
            named,
            options,
            merge: LineMerge::new(if follows { MergePace::Followed } else { MergePace::Finished }),
            opened: Vec::new(),
            waiting: BTreeMap::new(),
            known: BTreeSet::new(),
            looked_at: None,
            next_look: follows.then(Instant::now),
            has_told_limit: false,
        }
    }

    async fn next(&mut self) -> Result<Option<JobLine>, CommandError> {
        loop {
            self.open_waiting();
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
            match (next, self.next_look) {
                (Some(Merged::Line(number, line)), _) => {
                    return Ok(Some(JobLine { job: self.opened[number], line }));
                }
                // Other outputs can still be read where its node is away.
                (Some(Merged::Failed(number, Error::Refused(refusal))), _) => {
                    let job = self.opened[number];
                    output::print_message(&format!("[the output of job {job} cannot be read: {refusal}]"));
                }
                (Some(Merged::Failed(_, error)), _) => return Err(error.into()),
                (None, _) if !self.waiting.is_empty() => {}
                (None, None) => return Ok(None),
                // Those that are open have ended; others may start.
                (None, Some(at)) => {
                    sleep_until(at).await;
                    self.look().await?;
                }
            }
        }
    }

    /// Finds jobs that have started since the last look.
    async fn look(&mut self) -> Result<(), CommandError> {
        let looked_at = now();
        let named = self.client.show(&self.named).await?;
        for job in &named {
            if job.array.is_some() {
                self.look_at_members(job.id).await?;
            } else {
                self.add(job);
            }
        }
        self.looked_at = Some(looked_at);
        let may_go_on = named.iter().any(|job| !job.state.is_terminal());
        self.next_look = self.next_look.filter(|_| may_go_on).map(|_| Instant::now() + LOOK);
        Ok(())
    }

    async fn look_at_members(&mut self, array: JobId) -> Result<(), CommandError> {
        let waits = [JobState::Pending, JobState::Held];
        let filter = Filter {
            members_of: Some(array.number),
            states: JobState::ALL.into_iter().filter(|state| !waits.contains(state)).collect(),
            ended_after: self.looked_at.map(|at| at - CLOCK_SKEW),
            ..Filter::default()
        };
        let mut members = self.client.list(filter);
        while let Some(member) = members.try_next().await? {
            self.add(&member);
        }
        Ok(())
    }

    /// A job that has not run has no output; it is found again when it has started.
    fn add(&mut self, job: &JobRecord) {
        if job.attempt > 0 && self.known.insert(job.id) {
            self.waiting.insert((job.started_at.unwrap_or(job.submitted_at), job.id), job.state);
        }
    }

    fn open_waiting(&mut self) {
        while self.merge.unfinished() < MOST_OPEN
            && let Some(((begins_at, job), _)) = self.waiting.pop_first()
        {
            let (client, options) = (self.client.clone(), self.options);
            self.merge
                .add(self.opened.len(), begins_at, move || lines(records(client.log_parts(job, options))));
            self.opened.push(job);
        }
        let live = self.waiting.values().filter(|state| !state.is_terminal()).count();
        if live > 0 && self.next_look.is_some() && !self.has_told_limit {
            self.has_told_limit = true;
            output::print_message(&limit_message(live));
        }
    }
}

fn limit_message(waiting: usize) -> String {
    format!(
        "note: at most {MOST_OPEN} jobs are followed at once; {} when others have ended. \
         To follow some of them, name them: cohabit logs -f 12.5 12.6",
        counted(waiting, "more runs, and is shown", "more run, and are shown")
    )
}

/// The line after the id of its job.
fn printed(JobLine { job, line }: &JobLine, colour: Colour) -> Vec<u8> {
    let prefix = match colour {
        Colour::None => format!("[{job}] "),
        Colour::Shown => {
            let position = job.number.wrapping_add(job.index.unwrap_or(0).into()) % COLORS.len() as u64;
            format!("\u{1b}[{}m[{job}]\u{1b}[0m ", COLORS[position as usize])
        }
    };
    [prefix.as_bytes(), &line.text, b"\n"].concat()
}

fn print_document(JobLine { job, line }: &JobLine) -> Result<(), CommandError> {
    output::print_line(&with_schema(JobLineDocument {
        job: *job,
        stream: line.stream,
        at: rfc3339(line.at),
        text: String::from_utf8_lossy(&line.text).into_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::at;

    #[test]
    fn each_line_begins_with_its_job_in_a_color_of_its_own() {
        let line = |index| JobLine {
            job: JobId::member(12, index),
            line: OutputLine { stream: LogStream::Stdout, at: at(1), text: b"a\xff".to_vec() },
        };
        assert_eq!(printed(&line(3), Colour::None), b"[12.3] a\xff\n");
        assert_eq!(printed(&line(3), Colour::Shown), b"\x1b[35m[12.3]\x1b[0m a\xff\n");
        assert_ne!(printed(&line(4), Colour::Shown)[..5], printed(&line(3), Colour::Shown)[..5]);
    }

    #[test]
    fn the_limit_says_how_many_are_not_shown_yet() {
        assert!(limit_message(9).contains("at most 64 jobs are followed at once; 9 more run"));
    }
}
