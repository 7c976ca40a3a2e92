//! The output of a rank, pulled piece by piece: a slow reader slows nobody, and a broken link loses nothing.
//!
//! One stream is the output of one rank; outputs are never merged. A stream that follows waits for a pending
//! job to start, goes on with the next attempt when the job is queued again, and ends when the job has.

use cohabit_net::Backoff;
use cohabit_types::{
    AttemptId, FollowMode, JobId, JobRecord, LogChunk, LogPosition, LogRecord, LogRequest, RankId, Refusal,
    RefusalCode,
};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt, try_unfold};
use tokio::time::timeout;

use crate::Error;
use crate::call::{Client, long_poll_context};
use crate::link::HeadConnection;
use crate::watch::JobWatcher;

/// Which output to read, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// The rank.
    pub rank: u32,
    /// Only of this attempt; else of the latest and, when following, of those after it.
    pub attempt: Option<u32>,
    /// Where to begin. Attempts after the first one read are read from their start.
    pub from: LogPosition,
    /// Whether to follow a job that has not ended.
    pub at_end: FollowMode,
}

/// A piece of the output of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// The rank.
    pub rank: RankId,
    /// What it printed.
    pub chunk: LogChunk,
}

impl Default for LogOptions {
    /// All that rank 0 of the latest attempt has printed so far.
    fn default() -> LogOptions {
        LogOptions { rank: 0, attempt: None, from: LogPosition::Start, at_end: FollowMode::Return }
    }
}

impl LogOptions {
    /// All that rank 0 prints from the latest attempt on, until the job has ended.
    #[must_use]
    pub fn follow() -> LogOptions {
        LogOptions { at_end: FollowMode::Wait, ..LogOptions::default() }
    }
}

impl Client {
    /// The output of one rank of a job.
    #[must_use]
    pub fn logs(&self, job: JobId, options: LogOptions) -> BoxStream<'static, Result<LogRecord, Error>> {
        let records = |part: LogPart| stream::iter(part.chunk.records.into_iter().map(Ok));
        self.log_parts(job, options).map_ok(records).try_flatten().boxed()
    }

    /// The same in pieces, with the attempt, and how much is no longer kept.
    #[must_use]
    pub fn log_parts(&self, job: JobId, options: LogOptions) -> BoxStream<'static, Result<LogPart, Error>> {
        let reader = LogReader::new(self.clone(), job, options);
        try_unfold(reader, |mut reader| async move { Ok(reader.next().await?.map(|part| (part, reader))) })
            .boxed()
    }

    /// A piece of the output of a rank: what streams of output are made of.
    ///
    /// # Errors
    /// [`Error::Refused`], not retried, where the worker cannot be reached or there is no such output;
    /// [`Error::NotAllowed`] if the job is another user's.
    pub async fn read_log(&self, request: LogRequest) -> Result<LogChunk, Error> {
        let ask = |to: HeadConnection| async move {
            to.service.read_log(long_poll_context(), request).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }
}

/// A reader of the attempts of a job, one after another.
struct LogReader {
    client: Client,
    job: JobId,
    options: LogOptions,
    watcher: JobWatcher,
    /// The job as it was last seen.
    record: Option<JobRecord>,
    place: LogCursor,
    backoff: Backoff,
}

/// The position of a reader.
#[derive(Clone, Copy)]
enum LogCursor {
    /// Before the first attempt to read.
    Before,
    /// In this attempt, here.
    In(AttemptId, LogPosition),
    /// After this attempt.
    Behind(AttemptId),
}

impl LogReader {
    fn new(client: Client, job: JobId, options: LogOptions) -> LogReader {
        let watcher = JobWatcher::new(client.clone(), &[job]);
        LogReader {
            client,
            job,
            options,
            watcher,
            record: None,
            place: LogCursor::Before,
            backoff: Backoff::default(),
        }
    }

    /// The next piece that is not empty; none at the end.
    async fn next(&mut self) -> Result<Option<LogPart>, Error> {
        while let Some((attempt, from)) = self.place().await? {
            let part = self.read(attempt, from).await?;
            if part.is_some() {
                return Ok(part);
            }
        }
        Ok(None)
    }

    /// Where to read; none if nothing more is to come.
    async fn place(&mut self) -> Result<Option<(AttemptId, LogPosition)>, Error> {
        Ok(match self.place {
            LogCursor::Before => self.first().await?.map(|attempt| (attempt, self.options.from)),
            LogCursor::In(attempt, from) => Some((attempt, from)),
            LogCursor::Behind(attempt) => {
                self.after(attempt).await?.map(|attempt| (attempt, LogPosition::Start))
            }
        })
    }

    async fn first(&mut self) -> Result<Option<AttemptId>, Error> {
        let Some(wanted) = self.options.attempt else {
            return Ok(self.latest(1).await?.map(|latest| self.job.attempt(latest)));
        };
        match self.latest(wanted).await? {
            Some(_) => Ok(Some(self.job.attempt(wanted))),
            None => Err(not_found(format!(
                "job {} has no attempt {wanted}: see 'attempts' in its record",
                self.job
            ))),
        }
    }

    async fn after(&mut self, read: AttemptId) -> Result<Option<AttemptId>, Error> {
        let next = read.attempt + 1;
        let follows_on = self.follows() && self.options.attempt.is_none();
        let is_there = follows_on && self.latest(next).await?.is_some();
        Ok(is_there.then_some(self.job.attempt(next)))
    }

    fn follows(&self) -> bool {
        self.options.at_end == FollowMode::Wait
    }

    /// The latest attempt, once it is at least this; none if the job has ended without, or is not followed.
    async fn latest(&mut self, at_least: u32) -> Result<Option<u32>, Error> {
        loop {
            match &self.record {
                Some(record) if record.attempt >= at_least => return Ok(Some(record.attempt)),
                Some(_) if !self.follows() => return Ok(None),
                Some(_) | None => {}
            }
            let Some(record) = self.watcher.next().await? else { return Ok(None) };
            self.options.check(&record)?;
            self.record = Some(record);
        }
    }

    async fn read(&mut self, attempt: AttemptId, from: LogPosition) -> Result<Option<LogPart>, Error> {
        let rank = attempt.rank(self.options.rank);
        match self.client.read_log(LogRequest { rank, from, at_end: self.options.at_end }).await {
            Ok(chunk) => Ok(self.advance(rank, chunk)),
            Err(Error::Refused(refusal)) if self.follows() && is_transient_refusal(refusal.code) => {
                self.handle_unavailable_log(attempt, refusal).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn advance(&mut self, rank: RankId, chunk: LogChunk) -> Option<LogPart> {
        let is_empty = chunk.records.is_empty() && chunk.dropped == 0;
        let is_last = chunk.complete || (is_empty && !self.follows());
        self.backoff.reset();
        self.place = match is_last {
            true => LogCursor::Behind(rank.attempt),
            false => LogCursor::In(rank.attempt, LogPosition::At(chunk.next)),
        };
        (!is_empty).then_some(LogPart { rank, chunk })
    }

    /// The output cannot be read now: waits for the worker while the attempt lives, goes on to the next
    /// attempt if there is one, and gives up when the job is over.
    async fn handle_unavailable_log(&mut self, attempt: AttemptId, refusal: Refusal) -> Result<(), Error> {
        let is_over = self.record.as_ref().is_none_or(|record| record.state.is_terminal());
        let is_old = self.record.as_ref().is_some_and(|record| record.attempt > attempt.attempt);
        match (is_old, self.options.attempt) {
            (true, None) => self.place = LogCursor::Behind(attempt),
            (true, Some(_)) => return Err(refusal.into()),
            (false, _) if is_over => return Err(refusal.into()),
            (false, _) => self.pause().await?,
        }
        Ok(())
    }

    /// Until the job changes, or it is time to try again.
    async fn pause(&mut self) -> Result<(), Error> {
        if let Ok(changed) = timeout(self.backoff.next_delay(), self.watcher.next()).await {
            self.record = changed?.or(self.record.take());
        }
        Ok(())
    }
}

impl LogOptions {
    /// Refuses arrays and unknown ranks, which have no output.
    fn check(&self, record: &JobRecord) -> Result<(), Error> {
        let job = record.id;
        if record.array.is_some() {
            let why = format!("{job} is an array: name one of its members, {job}.INDEX");
            return Err(Refusal::new(RefusalCode::Invalid, why).into());
        }
        let ranks = record.latest().map_or(0, |attempt| attempt.ranks.len());
        if ranks > 0 && self.rank as usize >= ranks {
            return Err(not_found(format!(
                "job {job} has no rank {}: its ranks are 0 to {}",
                self.rank,
                ranks - 1
            )));
        }
        Ok(())
    }
}

fn not_found(why: String) -> Error {
    Refusal::new(RefusalCode::NotFound, why).into()
}

/// Whether a log that was refused with this code may still come: its worker is away, or has not begun to
/// write it.
fn is_transient_refusal(code: RefusalCode) -> bool {
    match code {
        RefusalCode::Unavailable | RefusalCode::NotFound => true,
        RefusalCode::Invalid
        | RefusalCode::Unsatisfiable
        | RefusalCode::Ambiguous
        | RefusalCode::NotAllowed
        | RefusalCode::WrongState
        | RefusalCode::Internal
        | RefusalCode::StorageFailed
        | RefusalCode::Limit => false,
    }
}
