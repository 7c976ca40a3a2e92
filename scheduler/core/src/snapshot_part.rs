//! A part of a snapshot, or of the archive: some jobs with their submissions. Jobs that share their memory
//! are stored once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cohabit_types::JobId;

use crate::archived_submission::ArchivedSubmission;
use crate::job::Job;
use crate::spec_pool::SpecPool;
use crate::submission::SubmissionState;

/// Some of a head's jobs, in the order of their ids.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct SnapshotPart {
    /// The submissions whose first job is in this part, by number.
    pub submissions: Vec<(u64, Arc<SubmissionState>)>,
    /// The jobs. None where a job is the same as the one before it, which may be in an earlier part.
    pub jobs: Vec<(JobId, Option<Arc<Job>>)>,
    /// Those of the jobs that only wait for room in the cluster.
    pub eligible: Vec<JobId>,
    /// Summaries of submissions that were archived, by number.
    pub archived: Vec<(u64, Arc<ArchivedSubmission>)>,
}

/// The first job of a snapshot refers to a job before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingFirstJob(pub JobId);

impl fmt::Display for MissingFirstJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "job {} is stored as equal to the job before it, but there is no job before the first",
            self.0
        )
    }
}

impl std::error::Error for MissingFirstJob {}

impl SnapshotPart {
    /// Appends the next part of the same submissions, as the archive has them.
    pub fn append(&mut self, next: SnapshotPart) {
        let is_there = |number: &u64| self.submissions.iter().any(|(there, _)| there == number);
        let more: Vec<_> = next.submissions.into_iter().filter(|(number, _)| !is_there(number)).collect();
        self.submissions.extend(more);
        self.jobs.extend(next.jobs);
        self.eligible.extend(next.eligible);
        self.archived.extend(next.archived);
    }

    /// Gives back what a decoded part does not need: submissions of one user that ask for the same share one
    /// specification, and lists of jobs have no spare room. The next part takes the memory that this frees.
    pub fn compact(&mut self) {
        SpecPool::default().share_all(self.submissions.iter_mut().map(|(_, submission)| submission));
        let jobs = self.jobs.iter_mut().filter_map(|(_, job)| job.as_mut().and_then(Arc::get_mut));
        jobs.for_each(Job::shrink);
    }

    /// A part with some jobs of one submission.
    pub(crate) fn of(
        number: u64,
        submission: &Arc<SubmissionState>,
        jobs: &[(JobId, Arc<Job>)],
    ) -> SnapshotPart {
        let mut before = None;
        let jobs = jobs.iter().map(|(id, job)| (*id, unless_same(Arc::clone(job), &mut before))).collect();
        SnapshotPart { submissions: vec![(number, Arc::clone(submission))], jobs, ..SnapshotPart::default() }
    }
}

/// The job, unless it shares its memory with the one before it, which it then becomes.
pub(crate) fn unless_same(job: Arc<Job>, before: &mut Option<Arc<Job>>) -> Option<Arc<Job>> {
    if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, &job)) {
        return None;
    }
    *before = Some(Arc::clone(&job));
    Some(job)
}

/// Gives every job of a run the content of the first one; they share it.
pub(crate) fn expand_runs(
    runs: Vec<(JobId, Option<Arc<Job>>)>,
) -> Result<BTreeMap<JobId, Arc<Job>>, MissingFirstJob> {
    let mut before: Option<Arc<Job>> = None;
    let mut expand = |(id, job): (JobId, Option<Arc<Job>>)| {
        before = job.or_else(|| before.take());
        Ok((id, before.clone().ok_or(MissingFirstJob(id))?))
    };
    runs.into_iter().map(&mut expand).collect()
}
