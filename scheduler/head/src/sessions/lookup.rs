//! Answers from memory, and from the history where the memory has let go of a job.
//!
//! The core answers first and alone decides what it knows. Only what it does not find is looked for in the
//! history, and the two are joined as if they were one.

use std::collections::BTreeMap;

use cohabit_types::{
    Answer, Filter, JobId, JobRecord, JobRef, JobRevision, ListPage, Query, Refusal, RefusalCode,
};
use tokio::task::spawn_blocking;

use super::client::{ClientSession, ending};
use crate::HeadError;
use crate::clock::wall_clock;
use crate::driver::Message;
use crate::history::HistoryReader;

impl ClientSession {
    /// The answer now; `Watch` does not wait.
    pub(super) async fn look_up(&self, query: Query) -> Result<Answer, Refusal> {
        let answer = self.ask(query.clone()).await?;
        match (query, answer) {
            (Query::List(filter), Answer::Listed(page)) if self.reaches_into_history(&filter) => {
                self.with_history(filter, page).await
            }
            (query, Answer::Refused(refusal)) if refusal.code == RefusalCode::NotFound => {
                self.beyond_memory(query, refusal).await
            }
            (_, answer) => Ok(answer),
        }
    }

    /// A job's record, from wherever it is known.
    pub(super) async fn record(&self, job: JobId) -> Result<JobRecord, Refusal> {
        match self.look_up(Query::Show(vec![job])).await? {
            Answer::Jobs(mut records) if !records.is_empty() => Ok(records.remove(0)),
            Answer::Refused(refusal) => Err(refusal),
            Answer::Jobs(_)
            | Answer::Resolved(_)
            | Answer::Listed(_)
            | Answer::Explained { .. }
            | Answer::Considered(_)
            | Answer::Nodes(_) => Err(no_such_job(job)),
        }
    }

    async fn ask(&self, query: Query) -> Result<Answer, Refusal> {
        let by = self.by.clone();
        let asked = self.session_context.driver.ask(|reply_to| Message::Query { by, query, reply_to });
        asked.await.map_err(|error| ending(&error))
    }

    /// Some job of the question is not in memory.
    async fn beyond_memory(&self, query: Query, refusal: Refusal) -> Result<Answer, Refusal> {
        match query {
            Query::Show(jobs) => self.show(jobs).await.map(Answer::Jobs),
            Query::Watch(watched) => self.changed(watched).await.map(Answer::Jobs),
            Query::Explain(job) => self.explain(job).await,
            Query::Resolve(references) => self.resolve(references).await.map(Answer::Resolved),
            Query::List(_) | Query::Consider(_) | Query::Nodes => Err(refusal),
        }
    }

    async fn show(&self, jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        let forgotten = self.forgotten(jobs.clone()).await?;
        let known: Vec<JobId> = jobs.iter().copied().filter(|job| !forgotten.contains_key(job)).collect();
        let mut found: BTreeMap<JobId, JobRecord> = forgotten;
        if let Answer::Jobs(records) = self.ask(Query::Show(known)).await? {
            found.extend(records.into_iter().map(|record| (record.id, record)));
        }
        jobs.into_iter().map(|job| found.get(&job).cloned().ok_or_else(|| no_such_job(job))).collect()
    }

    async fn changed(&self, watched: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        let forgotten = self.forgotten(watched.iter().map(|it| it.job).collect()).await?;
        let (old, live): (Vec<JobRevision>, _) =
            watched.into_iter().partition(|it| forgotten.contains_key(&it.job));
        let mut changed = match self.ask(Query::Watch(live)).await? {
            Answer::Jobs(records) => records,
            Answer::Refused(refusal) => return Err(refusal),
            Answer::Resolved(_)
            | Answer::Listed(_)
            | Answer::Explained { .. }
            | Answer::Considered(_)
            | Answer::Nodes(_) => Vec::new(),
        };
        let unseen = |it: &JobRevision| {
            forgotten.get(&it.job).filter(|record| record.revision != it.revision).cloned()
        };
        changed.extend(old.iter().filter_map(unseen));
        Ok(changed)
    }

    async fn explain(&self, job: JobId) -> Result<Answer, Refusal> {
        let record = self.forgotten(vec![job]).await?.remove(&job).ok_or_else(|| no_such_job(job))?;
        let sentences = vec![
            format!("Job {job} ended as {} after {} attempt(s).", record.state, record.attempts.len()),
            format!("{} ({})", record.reason, record.reason_code),
            "It ended so long ago that only its record is kept, without its story.".to_owned(),
        ];
        Ok(Answer::Explained { sentences, story: Vec::new() })
    }

    /// Each reference by itself: some mean jobs in memory, others not.
    async fn resolve(&self, references: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        let mut jobs = Vec::new();
        for reference in references {
            match self.ask(Query::Resolve(vec![reference.clone()])).await? {
                Answer::Resolved(found) => jobs.extend(found),
                Answer::Refused(refusal) => jobs.extend(self.resolve_forgotten(reference, refusal).await?),
                Answer::Listed(_)
                | Answer::Jobs(_)
                | Answer::Explained { .. }
                | Answer::Considered(_)
                | Answer::Nodes(_) => {}
            }
        }
        Ok(jobs)
    }

    async fn resolve_forgotten(&self, reference: JobRef, refusal: Refusal) -> Result<Vec<JobId>, Refusal> {
        let found = match reference {
            JobRef::Id(job) => self.forgotten(vec![job]).await?.into_keys().collect(),
            JobRef::Range(first, last) => self.history(move |history| history.numbers(first..=last)).await?,
            JobRef::Last(_) | JobRef::Name(_) => Vec::new(),
        };
        if found.is_empty() { Err(refusal) } else { Ok(found) }
    }

    /// Records of those jobs that are in the history and not in memory.
    async fn forgotten(&self, mut jobs: Vec<JobId>) -> Result<BTreeMap<JobId, JobRecord>, Refusal> {
        let known = self.known(jobs.clone()).await?;
        jobs.retain(|job| !known.contains(job));
        let records = move |history: &HistoryReader| {
            let found = jobs.iter().map(|job| history.record(*job));
            found.collect::<Result<Vec<_>, _>>()
        };
        let found = self.history(records).await?;
        Ok(found.into_iter().flatten().map(|record| (record.id, record)).collect())
    }

    async fn known(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>, Refusal> {
        let asked = self.session_context.driver.ask(|reply_to| Message::Known(jobs, reply_to));
        asked.await.map_err(|error| ending(&error))
    }

    /// Whether jobs that the memory has let go of may pass the filter.
    fn reaches_into_history(&self, filter: &Filter) -> bool {
        let wants_ended = filter.states.is_empty() || filter.states.iter().any(|state| state.is_terminal());
        let remembered_since = wall_clock() - self.session_context.memory;
        wants_ended && filter.ended_after.is_none_or(|after| after < remembered_since)
    }

    /// A page of memory and history together. A job that is in memory again is as the memory says.
    async fn with_history(&self, filter: Filter, page: ListPage) -> Result<Answer, Refusal> {
        let limit = filter.limit.clamp(1, LONGEST_PAGE);
        let wanted = Filter { limit, ..filter };
        let mut old = self.history(move |history| history.list(&wanted)).await?;
        let horizon =
            [horizon(page.more, &page.jobs), horizon(old.more, &old.jobs)].into_iter().flatten().min();
        let in_memory = self.known(old.jobs.iter().map(|record| record.id).collect()).await?;
        old.jobs.retain(|record| !in_memory.contains(&record.id));
        let mut jobs: Vec<JobRecord> = page.jobs.into_iter().chain(old.jobs.into_iter().map(brief)).collect();
        jobs.sort_by_key(|record| record.id);
        jobs.retain(|record| horizon.is_none_or(|horizon| record.id <= horizon));
        let more = horizon.is_some() || jobs.len() > limit as usize;
        jobs.truncate(limit as usize);
        Ok(Answer::Listed(ListPage { jobs, more }))
    }

    async fn history<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&HistoryReader) -> Result<T, HeadError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let history = self.session_context.history.clone();
        let asked = spawn_blocking(move || ask(&history)).await.map_err(HeadError::failed);
        asked.and_then(|answered| answered).map_err(|error| {
            tracing::error!(%error, "the history cannot be read");
            Refusal::new(RefusalCode::Internal, format!("the history cannot be read: {error}"))
        })
    }
}

/// The longest page of a list, as in the core.
const LONGEST_PAGE: u32 = 1_000;

/// Up to where a page that has more after it is complete.
fn horizon(more: bool, jobs: &[JobRecord]) -> Option<JobId> {
    jobs.last().map(|record| record.id).filter(|_| more)
}

/// As lists show it: without all attempts but the latest.
fn brief(mut record: JobRecord) -> JobRecord {
    let earlier = record.attempts.len().saturating_sub(1);
    record.attempts.drain(..earlier);
    record
}

fn no_such_job(job: JobId) -> Refusal {
    Refusal::new(RefusalCode::NotFound, format!("there is no job {job}"))
}
