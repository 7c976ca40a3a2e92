//! Jobs that wait for the end of others.
//!
//! Ends are processed one after the other at the end of a transition. So a long chain of cancelled jobs is no
//! deep recursion, and an array of which many members end at once is published once.

use std::collections::BTreeSet;

use cohabit_types::{Cause, Dependency, JobId, JobState, ReasonCode, Refusal, RefusalCode};

use crate::dependency_graph::conditions;
use crate::head::Head;
use crate::job::Job;
use crate::reason::AwaitedJobs;
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

impl Transition<'_> {
    /// Lets the jobs of a new submission wait for those on which it depends, as far as they have not ended.
    pub(crate) fn await_dependencies(&mut self, number: u64) {
        let depends_on = &self.head.submissions[&number].spec.depends_on;
        if depends_on.is_empty() {
            return;
        }
        let mut awaited = conditions(depends_on);
        let mut failed = false;
        awaited.retain(|earlier, condition| match self.head.final_state(*earlier) {
            Some(state) => {
                failed |= !condition.is_met(state);
                false
            }
            None => true,
        });
        if failed {
            self.end_dependents(number);
        } else if awaited.is_empty() {
            self.release_dependents(number);
        } else {
            self.head.dependencies.insert(number, awaited);
        }
    }

    /// Lets a job that was queued again before it ever ran wait for those of its dependencies that have not
    /// ended. The request waives those that have, in whatever way.
    pub(crate) fn await_unfinished_dependencies(&mut self, id: JobId) {
        let number = id.number;
        // Other members of the same array may have been queued again before.
        if self.head.dependencies.count(number) == 0 {
            let mut awaited = conditions(&self.head.submissions[&number].spec.depends_on);
            awaited.retain(|earlier, _| {
                self.head.is_known(*earlier) && self.head.final_state(*earlier).is_none()
            });
            if awaited.is_empty() {
                return;
            }
            self.head.dependencies.insert(number, awaited);
        }
        if let Some(waiting) = self.job_mut(id).waiting_mut() {
            waiting.has_dependencies = true;
        }
        self.refresh_eligibility(id);
    }

    /// Notifies the dependents of all jobs that ended in this transition, and of those that end because of
    /// it.
    pub(crate) fn settle_ends(&mut self) {
        let mut arrays = BTreeSet::new();
        loop {
            if let Some((id, state)) = self.just_ended.pop_front() {
                self.head.forget_traits(id.number);
                self.head.forget_waits(id.number);
                self.wake_dependents(id, state);
                arrays.extend(id.index.map(|_| JobId::new(id.number)));
            } else if let Some(array) = arrays.pop_first() {
                self.settle_array(array);
            } else {
                return;
            }
        }
    }

    /// An array as a whole ends with its last member.
    fn settle_array(&mut self, array: JobId) {
        if let Some(state) = self.head.final_state(array) {
            self.publish_end(array);
            self.wake_dependents(array, state);
        }
    }

    /// A job has ended: submissions that waited for it last may run, or end too.
    fn wake_dependents(&mut self, earlier: JobId, state: TerminalState) {
        self.cause = Cause::Job(earlier);
        for dependent in self.head.dependencies.remove_ended(earlier) {
            if !dependent.condition.is_met(state) {
                self.end_dependents(dependent.number);
            } else if dependent.is_last {
                self.release_dependents(dependent.number);
            }
        }
    }

    /// The jobs of a submission that wait for those on which it depends.
    fn dependent_jobs(&self, number: u64) -> Vec<JobId> {
        let members = JobId::new(number)..=JobId::member(number, u32::MAX);
        let waiting = |job: &Job| job.waiting().is_some_and(|waiting| waiting.has_dependencies);
        self.head.jobs.range(members).filter(|(_, job)| waiting(job)).map(|(id, _)| *id).collect()
    }

    fn release_dependents(&mut self, number: u64) {
        for id in self.dependent_jobs(number) {
            if let Some(waiting) = self.job_mut(id).waiting_mut() {
                waiting.has_dependencies = false;
            }
            self.refresh_eligibility(id);
        }
    }

    fn end_dependents(&mut self, number: u64) {
        for id in self.dependent_jobs(number) {
            self.end_job(id, TerminalState::Cancelled, ReasonCode::DependencyFailed);
        }
    }
}

impl Head {
    /// A submission all of whose jobs have ended waits for no other.
    fn forget_waits(&mut self, number: u64) {
        if let Some(submission) = self.submissions.get(&number).filter(|it| it.has_ended()) {
            self.dependencies.remove_dependent(number, &submission.spec.depends_on);
        }
    }

    /// Refuses dependencies on jobs that are not known.
    pub(crate) fn check_dependencies(&self, dependencies: &[Dependency]) -> Result<(), Refusal> {
        match dependencies.iter().find(|dependency| !self.is_known(dependency.job)) {
            None => Ok(()),
            Some(unknown) => Err(Refusal::new(
                RefusalCode::NotFound,
                format!(
                    "it cannot depend on job {}: there is no such job, or it ended too long ago",
                    unknown.job
                ),
            )),
        }
    }

    /// Which dependency of a submission did not end as required; in general terms once that is forgotten, or
    /// was queued again.
    pub(crate) fn failed_dependency(&self, number: u64) -> String {
        let conditions = conditions(&self.submissions[&number].spec.depends_on);
        let failed = conditions.into_iter().find_map(|(job, condition)| {
            let state = self.final_state(job).filter(|state| !condition.is_met(*state))?;
            Some((job, state.job_state()))
        });
        match failed {
            Some((job, JobState::Completed)) => {
                format!("it was to run only if job {job} fails, which is COMPLETED")
            }
            Some((job, state)) => format!("it was to run only if job {job} completes, which is {state}"),
            None => "a job that it depends on did not end as required".to_owned(),
        }
    }

    pub(crate) fn is_known(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job) || self.is_array(job) || self.archived_state(job).is_some()
    }

    /// The jobs for whose end the submission still waits.
    pub(crate) fn awaited_jobs(&self, number: u64) -> AwaitedJobs {
        let waits = |job: &JobId| self.dependencies.waits_for(number, *job);
        let spec = self.submissions.get(&number).map(|it| it.spec.as_ref());
        let jobs = spec.into_iter().flat_map(|spec| &spec.depends_on).map(|it| it.job).filter(waits);
        AwaitedJobs::of(jobs, self.dependencies.count(number))
    }

    /// The state in which a job, or an array as a whole, ended; none while it is live.
    pub(crate) fn final_state(&self, job: JobId) -> Option<TerminalState> {
        match (self.jobs.get(&job), self.submissions.get(&job.number)) {
            (Some(job), _) => job.ended().map(|end| end.state),
            (None, Some(submission)) => submission.end_state(),
            (None, None) => self.archived_state(job),
        }
    }
}
