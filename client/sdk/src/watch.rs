//! Follows jobs by long polls: one question for all of them, answered when one has changed.
//!
//! Revisions are good for as long as one connection lasts, because a restarted head counts anew. So on a new
//! connection a watcher asks for all records, and leaves out what it has seen already.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cohabit_types::{JobId, JobPhase, JobRecord, JobRevision, Progress};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};
use tokio::time::timeout;

use crate::Error;
use crate::call::{Client, PAGE, long_poll_context};
use crate::link::HeadConnection;

/// Why a job waits changes with every other job, which is no change of its own: it is looked at this often,
/// for each hundred jobs that wait.
const REASON_PAUSE: Duration = Duration::from_secs(2);

/// Follows a changing set of jobs, with one question to the head for all of them.
pub struct JobsWatcher(JobWatcher);

/// Jobs that are followed, and what was last seen of them.
pub(crate) struct JobWatcher {
    client: Client,
    jobs: Vec<JobId>,
    seen: BTreeMap<JobId, JobRecord>,
    /// The connection on which it was seen.
    connection: u64,
}

impl Client {
    /// Waits for the end of all these jobs; returns their last records in the order asked. An array as a
    /// whole has ended when all its members have.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job.
    pub async fn wait(&self, jobs: &[JobId]) -> Result<Vec<JobRecord>, Error> {
        let mut ended = Vec::with_capacity(jobs.len());
        for page in jobs.chunks(PAGE) {
            ended.extend(JobWatcher::new(self.clone(), page).ended().await?);
        }
        Ok(ended)
    }

    /// A job's record now and after each change, the last when it has ended. Why it waits is looked at
    /// every two seconds.
    #[must_use]
    pub fn watch(&self, job: JobId) -> BoxStream<'static, Result<JobRecord, Error>> {
        let watcher = JobWatcher::new(self.clone(), &[job]);
        try_unfold(
            watcher,
            |mut watcher| async move { Ok(watcher.next().await?.map(|record| (record, watcher))) },
        )
        .boxed()
    }

    /// Follows jobs that are added by and by.
    #[must_use]
    pub fn watch_jobs(&self) -> JobsWatcher {
        JobsWatcher(JobWatcher::new(self.clone(), &[]))
    }

    /// Progress updates until the job ends. Updates in quick succession may be left out.
    #[must_use]
    pub fn progress(&self, job: JobId) -> BoxStream<'static, Result<Progress, Error>> {
        let mut last = None;
        let news = move |record: JobRecord| {
            let news = record.progress.filter(|now| last.as_ref() != Some(now));
            last = news.clone().or(last.take());
            async { Ok(news) }
        };
        self.watch(job).try_filter_map(news).boxed()
    }
}

impl JobsWatcher {
    /// Follows this job, too.
    pub fn add(&mut self, job: JobId) {
        if !self.0.jobs.contains(&job) {
            self.0.jobs.push(job);
        }
    }

    /// Waits until some jobs have changed, and returns their records; the first time that of each job. A job
    /// that has ended is followed no longer. Where nothing is followed it waits for ever. Dropping the future
    /// loses nothing.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job, and those of the link.
    pub async fn changes(&mut self) -> Result<Vec<JobRecord>, Error> {
        while self.0.has_live_jobs() {
            let changed = self.0.poll_with_reasons().await?;
            if !changed.is_empty() {
                self.0.forget_ended();
                return Ok(changed);
            }
        }
        std::future::pending().await
    }
}

impl fmt::Debug for JobsWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobsWatcher of {} jobs", self.0.jobs.len())
    }
}

impl JobWatcher {
    pub(crate) fn new(client: Client, jobs: &[JobId]) -> JobWatcher {
        JobWatcher { client, jobs: jobs.to_vec(), seen: BTreeMap::new(), connection: 0 }
    }

    /// The next record of the one job that is followed; none after its last.
    pub(crate) async fn next(&mut self) -> Result<Option<JobRecord>, Error> {
        while self.has_live_jobs() {
            if let Some(record) = self.poll_with_reasons().await?.pop() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The last records of all, in the order asked, once they have ended.
    async fn ended(mut self) -> Result<Vec<JobRecord>, Error> {
        while self.has_live_jobs() {
            self.poll_changes().await?;
        }
        Ok(self.jobs.iter().filter_map(|job| self.seen.get(job)).cloned().collect())
    }

    fn has_live_jobs(&self) -> bool {
        self.jobs.iter().any(|job| self.is_live(*job))
    }

    fn is_live(&self, job: JobId) -> bool {
        self.seen.get(&job).is_none_or(|record| !record.state.is_terminal())
    }

    /// Records that changed, or jobs that wait for another reason than before; perhaps none.
    async fn poll_with_reasons(&mut self) -> Result<Vec<JobRecord>, Error> {
        let waits = |record: &JobRecord| record.state.phase() == JobPhase::Waiting;
        let waiting = self.seen.values().filter(|record| waits(record)).count();
        if waiting == 0 {
            return self.poll_changes().await;
        }
        let pause = REASON_PAUSE * waiting.div_ceil(100) as u32;
        if let Ok(changed) = timeout(pause, self.poll_changes()).await {
            return changed;
        }
        // The head answers at once whose revision is unknown.
        self.seen.values_mut().filter(|record| waits(record)).for_each(|record| record.revision = 0);
        self.poll_changes().await
    }

    /// Records that changed; perhaps none, when the head has waited for long enough.
    async fn poll_changes(&mut self) -> Result<Vec<JobRecord>, Error> {
        let ask = |to: HeadConnection| {
            let (live, known) = (self.live_jobs(), self.known_on(to.number));
            async move {
                let records = match known {
                    Some(known) => to.service.watch(long_poll_context(), known).await?,
                    None => to.service.show(long_poll_context(), live).await?,
                };
                Ok(records.map(|records| (records, to.number)))
            }
        };
        let (records, connection) = self.client.call(ask).await?;
        self.connection = connection;
        Ok(records.into_iter().filter_map(|record| self.store_if_changed(record)).collect())
    }

    fn forget_ended(&mut self) {
        let mut jobs = std::mem::take(&mut self.jobs);
        jobs.retain(|job| self.is_live(*job));
        self.seen.retain(|_, record| !record.state.is_terminal());
        self.jobs = jobs;
    }

    fn live_jobs(&self) -> Vec<JobId> {
        self.jobs.iter().copied().filter(|job| self.is_live(*job)).collect()
    }

    /// The revisions that were seen of the live jobs, if they were seen on this connection.
    fn known_on(&self, connection: u64) -> Option<Vec<JobRevision>> {
        let revision = |job| self.seen.get(&job).map_or(0, |record| record.revision);
        let known = |job| JobRevision { job, revision: revision(job) };
        (connection == self.connection).then(|| self.live_jobs().into_iter().map(known).collect())
    }

    /// The record, if it tells anything new.
    fn store_if_changed(&mut self, record: JobRecord) -> Option<JobRecord> {
        let known = self.seen.insert(record.id, record.clone());
        let is_known = known.is_some_and(|known| JobRecord { revision: record.revision, ..known } == record);
        (!is_known).then_some(record)
    }
}
