//! Follows jobs by long polls: one question for all of them, answered when one has changed.
//!
//! Revisions are good for as long as one connection lasts, because a restarted head counts anew. So on a new
//! connection a watcher asks for all records, and leaves out what it has seen already.

use std::collections::BTreeMap;

use cohabit_types::{JobId, JobRecord, JobRevision, Progress};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};

use crate::Error;
use crate::call::{Client, PAGE, long_poll_context};
use crate::link::HeadConnection;

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

    /// A job's record now and after each change, the last when it has ended.
    #[must_use]
    pub fn watch(&self, job: JobId) -> BoxStream<'static, Result<JobRecord, Error>> {
        let watcher = JobWatcher::new(self.clone(), &[job]);
        try_unfold(
            watcher,
            |mut watcher| async move { Ok(watcher.next().await?.map(|record| (record, watcher))) },
        )
        .boxed()
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

impl JobWatcher {
    pub(crate) fn new(client: Client, jobs: &[JobId]) -> JobWatcher {
        JobWatcher { client, jobs: jobs.to_vec(), seen: BTreeMap::new(), connection: 0 }
    }

    /// The next record of the one job that is followed; none after its last.
    pub(crate) async fn next(&mut self) -> Result<Option<JobRecord>, Error> {
        while self.has_live_jobs() {
            if let Some(record) = self.poll_changes().await?.pop() {
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
