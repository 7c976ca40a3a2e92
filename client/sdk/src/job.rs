//! A handle for one job: the methods of a client that concern one job.

use std::sync::Arc;

use cohabit_types::{
    Bytes, ChangeResult, CopyDepth, CopyId, CopyRequest, Filter, JobChange, JobId, JobRecord, LogRecord,
    MetricSeries, Progress, Refusal, RefusalCode,
};
use futures::stream::BoxStream;
use uuid::Uuid;

use crate::call::Client;
use crate::{Error, LogOptions};

/// A job of the cluster, or an array as a whole. Dropping the handle does nothing to the job.
#[derive(Debug, Clone)]
pub struct JobHandle {
    client: Client,
    id: JobId,
    notes: Arc<[String]>,
}

impl JobHandle {
    pub(crate) fn new(client: Client, id: JobId) -> JobHandle {
        JobHandle { client, id, notes: Arc::default() }
    }

    pub(crate) fn with_notes(self, notes: Vec<String>) -> JobHandle {
        JobHandle { notes: notes.into(), ..self }
    }

    /// What the head has to say about the job that this handle submitted, for people: nothing that stops it.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Its present record.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job.
    pub async fn record(&self) -> Result<JobRecord, Error> {
        only(self.client.show(&[self.id]).await?)
    }

    /// Waits for its end; for that of all members, if it is an array as a whole.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job.
    pub async fn wait(&self) -> Result<JobRecord, Error> {
        only(self.client.wait(&[self.id]).await?)
    }

    /// Its record now and after each change, the last when it has ended.
    #[must_use]
    pub fn watch(&self) -> BoxStream<'static, Result<JobRecord, Error>> {
        self.client.watch(self.id)
    }

    /// Its progress, each time it reports some, until it has ended.
    #[must_use]
    pub fn progress(&self) -> BoxStream<'static, Result<Progress, Error>> {
        self.client.progress(self.id)
    }

    /// Its output.
    #[must_use]
    pub fn logs(&self, options: LogOptions) -> BoxStream<'static, Result<LogRecord, Error>> {
        self.client.logs(self.id, options)
    }

    /// The metrics of rank 0 over the steps of each attempt, the oldest first, with the attempt's number.
    ///
    /// # Errors
    /// As for [`Client::metrics`].
    pub async fn metrics(&self) -> Result<Vec<(u32, MetricSeries)>, Error> {
        let mut all = Vec::new();
        for attempt in self.record().await?.attempts {
            let rank = self.id.attempt(attempt.attempt).rank(0);
            all.push((attempt.attempt, self.client.metrics(rank).await?));
        }
        Ok(all)
    }

    /// The members of the array, if it is one.
    #[must_use]
    pub fn members(&self) -> BoxStream<'static, Result<JobRecord, Error>> {
        self.client.list(Filter { members_of: Some(self.id.number), ..Filter::default() })
    }

    /// Lets the worker of one rank of the latest attempt begin a copy of a file or directory, of which at
    /// most `limit` is sent; what [`Client::read_copy`] reads then.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is an array, or has not run.
    pub async fn start_copy(
        &self,
        path: &str,
        rank: u32,
        depth: CopyDepth,
        limit: Bytes,
    ) -> Result<CopyId, Error> {
        let record = self.record().await?;
        let refuse = |why: String| Err(Error::Refused(Refusal::new(RefusalCode::WrongState, why)));
        let job = self.id;
        if record.array.is_some() {
            return refuse(format!(
                "job {job} is an array, whose members have files of their own: name one, such as {job}.0"
            ));
        }
        if record.attempt == 0 {
            return refuse(format!("job {job} is {} and has not run: it has no files yet", record.state));
        }
        let (number, _) = Uuid::new_v4().as_u64_pair();
        let id = CopyId { rank: job.attempt(record.attempt).rank(rank), number };
        self.client.start_copy(CopyRequest { id, path: path.to_owned(), depth, limit }).await?;
        Ok(id)
    }

    /// Ends it, by its stop sequence if it runs.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if it is another user's.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.change(JobChange::Cancel).await
    }

    /// Ends it at once: SIGKILL if it runs, also while it is being stopped.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if it is another user's.
    pub async fn kill(&self) -> Result<(), Error> {
        self.change(JobChange::Kill).await
    }

    /// Applies this change.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is in a state in which that cannot be done.
    pub async fn change(&self, change: JobChange) -> Result<(), Error> {
        let verdicts = self.client.change(change, &[self.id]).await?;
        match verdicts.into_iter().next() {
            Some((_, ChangeResult::Done | ChangeResult::Already)) => Ok(()),
            Some((_, ChangeResult::Refused(refusal))) => Err(refusal.into()),
            None => Err(Error::Protocol("the answer of the head lacks the result of the change".into())),
        }
    }
}

/// The record of the one job asked for.
fn only(records: Vec<JobRecord>) -> Result<JobRecord, Error> {
    records
        .into_iter()
        .next()
        .ok_or_else(|| Error::Protocol("the answer of the head lacks the record of the job".into()))
}
