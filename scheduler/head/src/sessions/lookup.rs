//! Answers from memory, and from the history where a job is no longer in memory.
//!
//! The core answers first and alone decides what it knows. Only what it does not find is looked for in the
//! history, and the two are joined as if they were one.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_actor::{ReplyTo, blocking};
use cohabit_scheduler_core::{BriefRecords, Head};
use cohabit_types::{
    Bytes, Explanation, Filter, JobId, JobRecord, JobRef, JobRevision, JobUpdates, ListPage, Refusal,
    RefusalCode, Role, UpdateCursor, counted,
};
use tokio::sync::OwnedSemaphorePermit;

use super::client::{ClientSession, ending};
use crate::HeadError;
use crate::clock::wall_clock;
use crate::driver::{Message, Query};
use crate::history::{ArchivedContent, HistoryReader};
use crate::request_limits::check_count;

impl ClientSession {
    /// Asks the driver a query about what is in memory.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(ReplyTo<T>) -> Query,
    ) -> Result<T, Refusal> {
        let _permit = self.query_permit().await;
        let asked = self.session_context.driver.ask(|reply_to| Message::Query(query(reply_to)));
        asked.await.map_err(|error| ending(&error))
    }

    /// Waits for the turn of this user.
    pub(super) async fn query_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.session_context.queries.permit(&self.by.user).await
    }

    /// Waits until an answer of so many bytes may go to this user. Admins do not wait.
    pub(super) async fn pace_answer(&self, bytes: usize) {
        if self.by.role != Role::Admin {
            self.session_context.answers.pace(&self.by.user, bytes).await;
        }
    }

    /// The record of a job, from wherever it is known.
    pub(super) async fn record(&self, job: JobId) -> Result<JobRecord, Refusal> {
        self.look_up_records(vec![job]).await?.pop().ok_or_else(|| no_such_job(job))
    }

    /// The records of these jobs, each once and in their order: of the first ones, where an answer cannot
    /// hold all.
    pub(super) async fn look_up_records(&self, mut jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        check_count(jobs.len())?;
        let mut named = BTreeSet::new();
        jobs.retain(|job| named.insert(*job));
        let (mut records, mut bytes) = (Vec::new(), 0);
        for some in jobs.chunks(READ_AT_ONCE) {
            let found = match self.ask(|reply_to| Query::Show(some.to_vec(), reply_to)).await? {
                Err(refusal) if refusal.code == RefusalCode::NotFound => {
                    self.records_with_history(some).await?
                }
                answer => answer?,
            };
            // Some are missing where an answer from memory could not hold all.
            let is_short = found.len() < some.len();
            bytes += found.iter().map(JobRecord::weight).sum::<usize>();
            records.extend(found);
            if is_short || bytes >= MOST_BYTES {
                break;
            }
        }
        self.pace_answer(bytes).await;
        Ok(records)
    }

    async fn records_with_history(&self, jobs: &[JobId]) -> Result<Vec<JobRecord>, Refusal> {
        let mut found = self.forgotten(jobs.to_vec()).await?;
        let live = jobs.iter().copied().filter(|job| !found.contains_key(job)).collect();
        let live = self.ask(|reply_to| Query::Show(live, reply_to)).await??;
        found.extend(live.into_iter().map(|record| (record.id, record)));
        Ok(jobs.iter().map_while(|job| found.remove(job)).collect())
    }

    /// The records of those jobs whose revision is not the known one; does not wait.
    pub(super) async fn changed_since(&self, known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        let (mut changed, mut bytes) = (Vec::new(), 0);
        for some in known.chunks(COMPARED_AT_ONCE) {
            let news = match self.ask(|reply_to| Query::ChangedSince(some.to_vec(), reply_to)).await? {
                Err(refusal) if refusal.code == RefusalCode::NotFound => {
                    self.changed_with_history(some).await?
                }
                answer => answer?,
            };
            bytes += news.iter().map(JobRecord::weight).sum::<usize>();
            changed.extend(news);
            if bytes >= MOST_BYTES {
                break;
            }
        }
        self.pace_answer(bytes).await;
        Ok(changed)
    }

    async fn changed_with_history(&self, known: &[JobRevision]) -> Result<Vec<JobRecord>, Refusal> {
        let forgotten = self.forgotten(known.iter().map(|it| it.job).collect()).await?;
        let (old, live): (Vec<&JobRevision>, Vec<&JobRevision>) =
            known.iter().partition(|it| forgotten.contains_key(&it.job));
        let live = live.into_iter().copied().collect();
        let live = self.ask(|reply_to| Query::ChangedSince(live, reply_to)).await??;
        let unseen = |it: &JobRevision| {
            forgotten.get(&it.job).filter(|record| record.revision != it.revision).cloned()
        };
        Ok(live.into_iter().chain(old.into_iter().filter_map(unseen)).collect())
    }

    /// The jobs that have changed since the cursor.
    pub(super) async fn look_up_updates(&self, after: Option<UpdateCursor>) -> Result<JobUpdates, Refusal> {
        let log = &self.session_context.updates;
        let end = log.end();
        let logged = after.and_then(|after| Some((after, log.after(after, UPDATED_AT_ONCE)?)));
        let Some((after, logged)) = logged else {
            return Ok(JobUpdates { gap: true, jobs: Vec::new(), next: end, more: false });
        };
        let wanted = logged.iter().map(|(_, job)| *job).collect();
        let BriefRecords { records: jobs, passed } =
            self.ask(|reply_to| Query::Brief(wanted, reply_to)).await?;
        self.pace_answer(jobs.iter().map(JobRecord::weight).sum()).await;
        let position = logged[..passed].last().map_or(after.position, |(position, _)| *position);
        let next = UpdateCursor { position, ..after };
        Ok(JobUpdates { gap: false, jobs, next, more: next.position < end.position })
    }

    /// Why a job waits, or why it ended as it did.
    pub(super) async fn look_up_explanation(&self, job: JobId) -> Result<Explanation, Refusal> {
        match self.ask(|reply_to| Query::Explain(job, reply_to)).await? {
            Err(refusal) if refusal.code == RefusalCode::NotFound => self.explain_from_history(job).await,
            answer => answer,
        }
    }

    /// Explains a job that has left memory from the archive; where it has left that, too, from its record.
    async fn explain_from_history(&self, job: JobId) -> Result<Explanation, Refusal> {
        let numbers = BTreeSet::from([job.number]);
        let archived = self.history(move |history| history.archived(&numbers, MOST_EXPLAINED)).await?;
        if let ArchivedContent::Submissions(mut found) = archived
            && let Some(head) = found.pop().and_then(|content| Head::of_archived(content).ok())
            && let Ok(explanation) = head.at(wall_clock()).explain(job)
        {
            return Ok(explanation);
        }
        let record = self.forgotten(vec![job]).await?.remove(&job).ok_or_else(|| no_such_job(job))?;
        let sentences = vec![
            format!(
                "Job {job} ended as {} after {}.",
                record.state,
                counted(record.attempts.len(), "attempt", "attempts")
            ),
            format!("{} ({})", record.reason, record.reason_code),
            "It ended so long ago that only its record is kept, without its history.".to_owned(),
        ];
        Ok(Explanation { sentences, history: Vec::new() })
    }

    /// The jobs that these references mean, in their order.
    pub(super) async fn look_up_references(&self, references: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        check_count(references.len())?;
        let mut jobs = Vec::new();
        for some in references.chunks(RESOLVED_AT_ONCE) {
            jobs.extend(self.look_up_some_references(some).await?);
            check_count(jobs.len())?;
        }
        Ok(jobs)
    }

    async fn look_up_some_references(&self, references: &[JobRef]) -> Result<Vec<JobId>, Refusal> {
        match self.resolve_in_memory(references.to_vec()).await? {
            Err(refusal) if refusal.code == RefusalCode::NotFound => {}
            answer => return answer,
        }
        // Each by itself: some mean jobs in memory, others not.
        let mut jobs = Vec::new();
        for reference in references {
            jobs.extend(match self.resolve_in_memory(vec![reference.clone()]).await? {
                Ok(found) => found,
                Err(refusal) => self.resolve_forgotten(reference.clone(), refusal).await?,
            });
        }
        Ok(jobs)
    }

    async fn resolve_in_memory(
        &self,
        references: Vec<JobRef>,
    ) -> Result<Result<Vec<JobId>, Refusal>, Refusal> {
        let by = self.by.clone();
        self.ask(|reply_to| Query::Resolve(by, references, reply_to)).await
    }

    async fn resolve_forgotten(&self, reference: JobRef, refusal: Refusal) -> Result<Vec<JobId>, Refusal> {
        let found = match reference {
            JobRef::Id(job) => self.forgotten(vec![job]).await?.into_keys().collect(),
            JobRef::Range(first, last) => self.history(move |history| history.numbers(first..=last)).await?,
            JobRef::Last(_) | JobRef::Name(_) => Vec::new(),
        };
        if found.is_empty() { Err(refusal) } else { Ok(found) }
    }

    /// A page of jobs.
    pub(super) async fn look_up_page(&self, filter: Filter) -> Result<ListPage, Refusal> {
        let page = self.page_in_memory(filter.clone()).await?;
        let page = match self.reaches_into_history(&filter) {
            true => self.page_with_history(filter, page).await?,
            false => page,
        };
        self.pace_answer(page.jobs.iter().map(JobRecord::weight).sum()).await;
        Ok(page)
    }

    /// A page of the jobs in memory. The driver looks at a part of them at a time, so that a filter which
    /// few jobs pass delays nobody.
    async fn page_in_memory(&self, filter: Filter) -> Result<ListPage, Refusal> {
        let limit = filter.limit.clamp(1, LONGEST_PAGE) as usize;
        let (mut jobs, mut bytes, mut after) = (Vec::new(), 0, filter.after);
        loop {
            let wanted = Filter { after, limit: (limit - jobs.len()) as u32, ..filter.clone() };
            let part = self.ask(|reply_to| Query::List(wanted, reply_to)).await?;
            bytes += part.jobs.iter().map(JobRecord::weight).sum::<usize>();
            jobs.extend(part.jobs);
            after = part.continue_after;
            let is_full = jobs.len() >= limit || bytes >= MOST_BYTES;
            if after.is_none() || is_full {
                return Ok(ListPage { jobs, more: after.is_some() });
            }
        }
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
        self.ask(|reply_to| Query::Known(jobs, reply_to)).await
    }

    /// Whether jobs that are no longer in memory may pass the filter.
    fn reaches_into_history(&self, filter: &Filter) -> bool {
        let wants_ended = filter.states.is_empty() || filter.states.iter().any(|state| state.is_terminal());
        let remembered_since = wall_clock() - self.session_context.memory;
        wants_ended && filter.ended_after.is_none_or(|after| after < remembered_since)
    }

    /// A page of memory and history together. A job that is in memory again is as the memory says.
    async fn page_with_history(&self, filter: Filter, page: ListPage) -> Result<ListPage, Refusal> {
        let limit = filter.limit.clamp(1, LONGEST_PAGE);
        let wanted = Filter { limit, ..filter };
        let mut old = self.history(move |history| history.list(&wanted)).await?;
        let horizon =
            [horizon(page.more, &page.jobs), horizon(old.more, &old.jobs)].into_iter().flatten().min();
        let in_memory = self.known(old.jobs.iter().map(|record| record.id).collect()).await?;
        old.jobs.retain(|record| !in_memory.contains(&record.id));
        let mut jobs: Vec<JobRecord> = page.jobs.into_iter().chain(old.jobs).collect();
        jobs.sort_by_key(|record| record.id);
        // A job may have been archived between the two looks.
        jobs.dedup_by_key(|record| record.id);
        jobs.retain(|record| horizon.is_none_or(|horizon| record.id <= horizon));
        let more = horizon.is_some() || jobs.len() > limit as usize;
        jobs.truncate(limit as usize);
        Ok(ListPage { jobs, more })
    }

    pub(super) async fn history<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&HistoryReader) -> Result<T, HeadError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _permit = self.query_permit().await;
        // What the head does not have in memory any more is there then, unless the journal cannot be written.
        let _settled = self.session_context.driver.ask(Message::SettleHistory).await;
        let history = self.session_context.history.clone();
        blocking(move || ask(&history)).await.map_err(|error| {
            let error = error.message_with_causes();
            tracing::error!(error, "the history cannot be read");
            Refusal::new(RefusalCode::Internal, format!("the history cannot be read: {error}"))
        })
    }
}

/// Jobs that are looked up at once: others are answered in between.
const READ_AT_ONCE: usize = 64;

/// Updates in one answer, all read at once.
const UPDATED_AT_ONCE: usize = 128;

/// Revisions that are compared at once; most jobs have not changed.
const COMPARED_AT_ONCE: usize = 128;

/// References that the driver resolves at once: for a name it looks at all jobs, and other questions wait.
const RESOLVED_AT_ONCE: usize = 4;

/// The most that is read of the archive for one explanation, as text.
const MOST_EXPLAINED: Bytes = Bytes(32 << 20);

/// The longest page of a list, as in the core.
const LONGEST_PAGE: u32 = 1_000;

/// An answer ends with the job or the part of a list that reaches this many bytes.
const MOST_BYTES: usize = 2 << 20;

/// Up to where a page that has more after it is complete.
fn horizon(more: bool, jobs: &[JobRecord]) -> Option<JobId> {
    jobs.last().map(|record| record.id).filter(|_| more)
}

fn no_such_job(job: JobId) -> Refusal {
    Refusal::new(RefusalCode::NotFound, format!("there is no job {job}"))
}
