//! Questions about jobs: one method for each, none of which changes anything.

use std::ops::Bound;

use cohabit_types::{Explanation, Filter, JobId, JobRecord, JobRevision, ListPage, Refusal, RefusalCode};

use crate::head::Head;
use crate::reader::HeadReader;

/// The longest page: an answer has to fit a frame.
const MAX_PAGE: u32 = 1_000;

impl HeadReader<'_> {
    /// The records of these jobs, in their order.
    ///
    /// # Errors
    /// When one of them is not in memory.
    pub fn show(&self, jobs: &[JobId]) -> Result<Vec<JobRecord>, Refusal> {
        jobs.iter().map(|job| self.record(*job).ok_or_else(|| no_such_job(*job))).collect()
    }

    /// The records of those jobs whose revision is not the known one; none when nothing has changed yet.
    ///
    /// # Errors
    /// When one of them is not in memory.
    pub fn changed_since(&self, known: &[JobRevision]) -> Result<Vec<JobRecord>, Refusal> {
        let mut changed = Vec::new();
        for JobRevision { job, revision } in known {
            let current = self.head.revision(*job).ok_or_else(|| no_such_job(*job))?;
            if current != *revision {
                changed.extend(self.record(*job));
            }
        }
        Ok(changed)
    }

    /// Why the job waits, or why it ended as it did.
    ///
    /// # Errors
    /// When it is not in memory.
    pub fn explain(&self, job: JobId) -> Result<Explanation, Refusal> {
        let sentences = self.sentences(job).ok_or_else(|| no_such_job(job))?;
        Ok(Explanation { sentences, history: self.head.job_history(job) })
    }

    /// A page of the jobs in memory that pass the filter, the newest last.
    pub fn list(&self, filter: &Filter) -> ListPage {
        let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
        let mut jobs: Vec<JobRecord> = match filter.members_of {
            Some(number) => self.head.members_after(number, filter.after),
            None => self.head.submissions_after(filter.after),
        }
        .filter_map(|id| self.record(id))
        .filter(|record| matches(filter, record))
        .map(|record| JobRecord { attempts: record.attempts.last().cloned().into_iter().collect(), ..record })
        .take(limit + 1)
        .collect();
        let more = jobs.len() > limit;
        jobs.truncate(limit);
        ListPage { jobs, more }
    }
}

impl Head {
    fn submissions_after(&self, after: Option<JobId>) -> Box<dyn Iterator<Item = JobId> + '_> {
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.number));
        Box::new(self.submissions.range((from, Bound::Unbounded)).map(|(number, _)| JobId::new(*number)))
    }

    fn members_after(&self, number: u64, after: Option<JobId>) -> Box<dyn Iterator<Item = JobId> + '_> {
        let from = Bound::Excluded(after.unwrap_or(JobId::new(number)));
        let to = Bound::Included(JobId::member(number, u32::MAX));
        let empty = after.is_some_and(|after| after >= JobId::member(number, u32::MAX));
        match empty {
            true => Box::new(std::iter::empty()),
            false => Box::new(self.jobs.range((from, to)).map(|(id, _)| *id)),
        }
    }
}

fn matches(filter: &Filter, record: &JobRecord) -> bool {
    let state = filter.states.is_empty() || filter.states.contains(&record.state);
    let user = filter.user.as_ref().is_none_or(|user| *user == record.user);
    let name = filter.name.as_ref().is_none_or(|name| *name == record.name);
    let recent = match (filter.ended_after, record.ended_at) {
        (Some(after), Some(ended_at)) => ended_at > after,
        (None, _) | (_, None) => true,
    };
    state && user && name && recent
}

fn no_such_job(job: JobId) -> Refusal {
    Refusal::new(RefusalCode::NotFound, format!("there is no job {job}"))
}
