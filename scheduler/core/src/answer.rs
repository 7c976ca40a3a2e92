//! Questions that change nothing.

use std::ops::Bound;

use cohabit_types::{
    Answer, Filter, JobId, JobRecord, JobRevision, ListPage, Principal, Query, Refusal, RefusalCode, Time,
};

use crate::head::Head;

/// The longest page: a reply has to fit a frame.
const MAX_PAGE: u32 = 1_000;

impl Head {
    /// Answers a query at once; `Watch` may be answered with no job, when nothing changed yet.
    pub fn answer(&self, now: Time, by: &Principal, query: &Query) -> Answer {
        match query {
            Query::Resolve(references) => self.resolve(by, references).map(Answer::Resolved),
            Query::List(filter) => Ok(Answer::Listed(self.list(now, filter))),
            Query::Show(jobs) => self.show(now, jobs).map(Answer::Jobs),
            Query::Explain(job) => self.explain(now, *job),
            Query::Consider(_) => {
                Err(Refusal::new(RefusalCode::Unavailable, "no policy is there to say where a job would go"))
            }
            Query::Nodes => Ok(Answer::Nodes(self.node_records())),
            Query::Watch(watched) => self.watch(now, watched).map(Answer::Jobs),
        }
        .unwrap_or_else(Answer::Refused)
    }

    fn show(&self, now: Time, jobs: &[JobId]) -> Result<Vec<JobRecord>, Refusal> {
        jobs.iter().map(|job| self.record(now, *job).ok_or_else(|| no_such_job(*job))).collect()
    }

    fn watch(&self, now: Time, watched: &[JobRevision]) -> Result<Vec<JobRecord>, Refusal> {
        let mut changed = Vec::new();
        for JobRevision { job, revision } in watched {
            let current = self.revision(*job).ok_or_else(|| no_such_job(*job))?;
            if current != *revision {
                changed.extend(self.record(now, *job));
            }
        }
        Ok(changed)
    }

    fn explain(&self, now: Time, job: JobId) -> Result<Answer, Refusal> {
        let sentences = self.sentences(now, job).ok_or_else(|| no_such_job(job))?;
        Ok(Answer::Explained { sentences, story: self.job_history(job) })
    }

    fn list(&self, now: Time, filter: &Filter) -> ListPage {
        let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
        let mut jobs: Vec<JobRecord> = match filter.members_of {
            Some(number) => self.members_after(number, filter.after),
            None => self.submissions_after(filter.after),
        }
        .filter_map(|id| self.record(now, id))
        .filter(|record| matches(filter, record))
        .map(|record| JobRecord { attempts: record.attempts.last().cloned().into_iter().collect(), ..record })
        .take(limit + 1)
        .collect();
        let more = jobs.len() > limit;
        jobs.truncate(limit);
        ListPage { jobs, more }
    }

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
