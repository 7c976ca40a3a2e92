//! Questions about jobs: one method for each, none of which changes anything.
//!
//! Each answer is bounded in bytes and in the work that it takes: the one who asks goes on where it ended.

use std::ops::Bound;

use cohabit_types::{Explanation, Filter, JobId, JobRecord, JobRevision, Refusal, RefusalCode};

use crate::head::Head;
use crate::reader::HeadReader;

/// The longest page.
const MAX_PAGE: u32 = 1_000;

/// An answer ends with the record that reaches this many bytes: with one more job it still fits a frame.
const MAX_ANSWER: usize = 4 << 20;

/// How many jobs one look into a list passes over: other questions wait meanwhile.
const MAX_SCANNED: usize = 20_000;

/// A part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPart {
    /// The jobs that pass the filter.
    pub jobs: Vec<JobRecord>,
    /// The last job that was looked at, if others follow it.
    pub continue_after: Option<JobId>,
}

/// Records as lists show them.
#[derive(Debug, Clone, PartialEq)]
pub struct BriefRecords {
    /// Those of the jobs that are in memory, in the order asked.
    pub records: Vec<JobRecord>,
    /// How many of the jobs were looked at: an answer that is full ends early.
    pub passed: usize,
}

impl HeadReader<'_> {
    /// The records of these jobs, in their order: of the first ones, where an answer cannot hold all.
    ///
    /// # Errors
    /// When one of them is not in memory.
    pub fn show(&self, jobs: &[JobId]) -> Result<Vec<JobRecord>, Refusal> {
        if let Some(unknown) = jobs.iter().find(|job| self.head.revision(**job).is_none()) {
            return Err(no_such_job(*unknown));
        }
        Ok(within_answer(jobs.iter().filter_map(|job| self.record(*job)), MAX_PAGE as usize))
    }

    /// The records of those jobs whose revision is not the known one, as many as an answer can hold; none
    /// when nothing has changed yet.
    ///
    /// # Errors
    /// When one of them is not in memory.
    pub fn changed_since(&self, known: &[JobRevision]) -> Result<Vec<JobRecord>, Refusal> {
        let mut changed = Vec::new();
        for JobRevision { job, revision } in known {
            let current = self.head.revision(*job).ok_or_else(|| no_such_job(*job))?;
            if current != *revision {
                changed.push(*job);
            }
        }
        Ok(within_answer(changed.into_iter().filter_map(|job| self.record(job)), MAX_PAGE as usize))
    }

    /// The records of those of these jobs that are in memory, as lists show them.
    #[must_use]
    pub fn brief_records(&self, jobs: &[JobId]) -> BriefRecords {
        let (mut records, mut bytes, mut passed) = (Vec::new(), 0, 0);
        while let Some(job) = jobs.get(passed).filter(|_| bytes < MAX_ANSWER) {
            let record = self.record(*job).map(JobRecord::brief);
            bytes += record.as_ref().map_or(0, JobRecord::weight);
            records.extend(record);
            passed += 1;
        }
        BriefRecords { records, passed }
    }

    /// Why the job waits, or why it ended as it did.
    ///
    /// # Errors
    /// When it is not in memory.
    pub fn explain(&self, job: JobId) -> Result<Explanation, Refusal> {
        let sentences = self.sentences(job).ok_or_else(|| no_such_job(job))?;
        Ok(Explanation { sentences, history: self.head.job_history(job) })
    }

    /// A part of the jobs in memory that pass the filter, the newest last.
    pub fn list(&self, filter: &Filter) -> ListPart {
        let limit = filter.limit.clamp(1, MAX_PAGE) as usize;
        let ids: Box<dyn Iterator<Item = JobId>> = match filter.members_of {
            Some(number) => self.head.members_after(number, filter.after),
            None => self.head.submissions_after(filter.after),
        };
        let (mut jobs, mut bytes) = (Vec::new(), 0);
        let mut ids = ids.enumerate().peekable();
        while let Some((passed, id)) = ids.next() {
            if self.head.matches(filter, id) {
                let record = self.record(id).map(JobRecord::brief);
                bytes += record.as_ref().map_or(0, JobRecord::weight);
                jobs.extend(record);
            }
            let is_full = jobs.len() == limit || bytes >= MAX_ANSWER || passed + 1 == MAX_SCANNED;
            if is_full && ids.peek().is_some() {
                return ListPart { jobs, continue_after: Some(id) };
            }
        }
        ListPart { jobs, continue_after: None }
    }
}

/// The first `most` records, up to the one that fills an answer.
fn within_answer(records: impl Iterator<Item = JobRecord>, most: usize) -> Vec<JobRecord> {
    let fits = |bytes: &mut usize, record: JobRecord| {
        let is_first_or_fits = *bytes < MAX_ANSWER;
        *bytes += record.weight();
        is_first_or_fits.then_some(record)
    };
    records.take(most).scan(0, fits).collect()
}

impl Head {
    /// Whether a job passes the filter; looks at no more than that takes.
    fn matches(&self, filter: &Filter, id: JobId) -> bool {
        let Some(submission) = self.submissions.get(&id.number) else { return false };
        let job = self.jobs.get(&id);
        let state = job.map_or_else(|| submission.state(), |job| job.state());
        let recent = filter.ended_after.is_none_or(|after| {
            let of_array = || submission.has_ended().then(|| self.last_end(id)).flatten();
            job.map_or_else(of_array, |job| Some(job.ended()?.at)).is_none_or(|at| at > after)
        });
        (filter.states.is_empty() || filter.states.contains(&state))
            && filter.user.as_ref().is_none_or(|user| *user == submission.user)
            && filter.name.as_ref().is_none_or(|name| *name == submission.spec.name)
            && recent
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

fn no_such_job(job: JobId) -> Refusal {
    Refusal::new(RefusalCode::NotFound, format!("there is no job {job}"))
}
