//! What each user has in the head's memory, kept in step with every change, for the limits of the shell.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{JobId, JobPhase, JobState, LiveJobs, Role};

use crate::archived_submission::{Archive, ArchivedSubmission};
use crate::job::Job;
use crate::submission::SubmissionState;

/// What one user has in memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct UserUsage {
    /// Jobs that wait, members of arrays one by one.
    pub waiting: u64,
    /// Jobs that hold devices and count against the limit on running jobs: not those of an admin, and not the
    /// stores of applications.
    pub placed: u64,
    /// Bytes of all submissions that are in memory, ended ones included, of the histories of their jobs, and
    /// of the summaries of archived ones.
    pub bytes: u64,
    /// Jobs that have not ended, by state.
    pub jobs: LiveJobs,
}

/// What all users have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Usage(BTreeMap<String, UserUsage>);

impl Usage {
    /// A submission that comes into memory.
    pub(crate) fn add(&mut self, submission: &SubmissionState) {
        let of_user = self.0.entry(submission.user.clone()).or_default();
        of_user.bytes += submission.weight();
        for (state, jobs) in &submission.state_counts {
            of_user.shift(submission, None, Some(*state), *jobs);
        }
    }

    /// Such a submission leaves.
    pub(crate) fn remove(&mut self, submission: &SubmissionState) {
        let Some(of_user) = self.0.get_mut(&submission.user) else { return };
        of_user.bytes = of_user.bytes.saturating_sub(submission.weight());
        for (state, jobs) in &submission.state_counts {
            of_user.shift(submission, Some(*state), None, *jobs);
        }
        if *of_user == UserUsage::default() {
            self.0.remove(&submission.user);
        }
    }

    /// A submission that was archived, of which a summary stays.
    pub(crate) fn add_archived(&mut self, archived: &ArchivedSubmission) {
        self.0.entry(archived.user.clone()).or_default().bytes += archived.weight();
    }

    /// Such a summary leaves.
    pub(crate) fn remove_archived(&mut self, archived: &ArchivedSubmission) {
        let Some(of_user) = self.0.get_mut(&archived.user) else { return };
        of_user.bytes = of_user.bytes.saturating_sub(archived.weight());
        if *of_user == UserUsage::default() {
            self.0.remove(&archived.user);
        }
    }

    /// What this user has.
    pub(crate) fn of_user(&self, user: &str) -> UserUsage {
        self.0.get(user).copied().unwrap_or_default()
    }

    /// The users with their jobs that have not ended.
    pub(crate) fn live_jobs(&self) -> impl Iterator<Item = (&str, LiveJobs)> {
        self.0.iter().filter(|(_, it)| it.jobs.total() > 0).map(|(user, it)| (user.as_str(), it.jobs))
    }

    /// One job of this submission changes its state.
    pub(crate) fn change(&mut self, submission: &SubmissionState, from: JobState, to: JobState) {
        if from != to
            && let Some(of_user) = self.0.get_mut(&submission.user)
        {
            of_user.shift(submission, Some(from), Some(to), 1);
        }
    }

    /// The histories of jobs of this user grew by so many bytes, and shrank by so many.
    pub(crate) fn count_history(&mut self, user: &str, added: u64, removed: u64) {
        if let Some(of_user) = self.0.get_mut(user) {
            of_user.bytes = (of_user.bytes + added).saturating_sub(removed);
        }
    }

    /// What the submissions, jobs and summaries in memory amount to.
    pub(crate) fn of(
        submissions: &BTreeMap<u64, Arc<SubmissionState>>,
        jobs: &BTreeMap<JobId, Arc<Job>>,
        archive: &Archive,
    ) -> Usage {
        let mut usage = Usage::default();
        archive.iter().for_each(|(_, archived)| usage.add_archived(archived));
        submissions.values().for_each(|submission| usage.add(submission));
        // Both are in the order of their numbers.
        let mut submissions = submissions.iter().peekable();
        for (id, job) in jobs {
            while submissions.next_if(|(number, _)| **number < id.number).is_some() {}
            if let Some((_, submission)) = submissions.peek().filter(|(number, _)| **number == id.number) {
                usage.count_history(&submission.user, job.history_weight(), 0);
            }
        }
        usage
    }
}

impl UserUsage {
    fn shift(
        &mut self,
        submission: &SubmissionState,
        from: Option<JobState>,
        to: Option<JobState>,
        jobs: u64,
    ) {
        if let Some(count) = from.and_then(|state| self.count(submission, state.phase())) {
            *count = count.saturating_sub(jobs);
        }
        if let Some(count) = to.and_then(|state| self.count(submission, state.phase())) {
            *count += jobs;
        }
        if let Some(count) = from.and_then(|state| self.jobs.count_mut(state)) {
            *count = count.saturating_sub(jobs);
        }
        if let Some(count) = to.and_then(|state| self.jobs.count_mut(state)) {
            *count += jobs;
        }
    }

    fn count(&mut self, submission: &SubmissionState, phase: JobPhase) -> Option<&mut u64> {
        match (phase, submission.role) {
            (JobPhase::Waiting, _) => Some(&mut self.waiting),
            (JobPhase::Placed, _) if submission.is_store() => None,
            (JobPhase::Placed, Role::User | Role::Worker | Role::Viewer) => Some(&mut self.placed),
            (JobPhase::Placed, Role::Admin) | (JobPhase::Ended, _) => None,
        }
    }
}
