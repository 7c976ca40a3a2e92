//! Jobs that wait for the end of others.
//!
//! Ends are processed one after the other at the end of a transition. So a long chain of cancelled jobs is no
//! deep recursion, and an array of which many members end at once is published once.

use std::collections::BTreeSet;

use cohabit_types::{Cause, Dependency, DependencyKind, JobId, ReasonCode, Refusal, RefusalCode};

use crate::head::Head;
use crate::job::{Job, TerminalState};
use crate::transition::Transition;

impl Transition<'_> {
    /// Lets the jobs of a new submission wait for those on which it depends, as far as they have not ended.
    pub(crate) fn await_dependencies(&mut self, number: u64) {
        let depends_on: BTreeSet<JobId> =
            self.head.submissions[&number].spec.depends_on.iter().map(|it| it.job).collect();
        if depends_on.is_empty() {
            return;
        }
        self.head.waits_for.insert(number, depends_on.clone());
        for earlier in depends_on {
            match self.head.final_state(earlier) {
                Some(state) => self.dependency_ended(number, earlier, state),
                None => drop(self.head.dependents.entry(earlier).or_default().insert(number)),
            }
        }
    }

    /// Notifies the dependents of all jobs that ended in this transition, and of those that end because of
    /// it.
    pub(crate) fn settle_ends(&mut self) {
        let mut arrays = BTreeSet::new();
        loop {
            if let Some((id, state)) = self.just_ended.pop_front() {
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

    fn wake_dependents(&mut self, earlier: JobId, state: TerminalState) {
        self.cause = Cause::Job(earlier);
        for dependent in self.head.dependents.remove(&earlier).unwrap_or_default() {
            self.dependency_ended(dependent, earlier, state);
        }
    }

    /// A job has ended on which a submission depends: its jobs may run if it was the last one, or end too.
    fn dependency_ended(&mut self, number: u64, earlier: JobId, state: TerminalState) {
        // A dependent that was cancelled meanwhile may be forgotten before the job that it waited for ends.
        let Some(left) = self.head.waits_for.get_mut(&number) else { return };
        left.remove(&earlier);
        let is_last = left.is_empty();
        if is_last {
            self.head.waits_for.remove(&number);
        }
        let depends_on = &self.head.submissions[&number].spec.depends_on;
        let satisfied = depends_on.iter().filter(|it| it.job == earlier).all(|it| satisfies(it.when, state));
        match (satisfied, is_last) {
            (true, true) => self.release_dependents(number),
            (true, false) => {}
            (false, _) => self.end_dependents(number),
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
    /// Refuses dependencies on jobs that are not in memory.
    pub(crate) fn check_dependencies(&self, dependencies: &[Dependency]) -> Result<(), Refusal> {
        let known = |job: JobId| self.jobs.contains_key(&job) || self.is_array(job);
        match dependencies.iter().find(|dependency| !known(dependency.job)) {
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

    /// The state in which a job, or an array as a whole, ended; none while it is live.
    pub(crate) fn final_state(&self, job: JobId) -> Option<TerminalState> {
        match self.jobs.get(&job) {
            Some(job) => job.ended().map(|end| end.state),
            None => TerminalState::of(self.submissions.get(&job.number).filter(|it| it.has_ended())?.state()),
        }
    }
}

/// Whether a job that ended in this state satisfies the dependency.
fn satisfies(when: DependencyKind, state: TerminalState) -> bool {
    match when {
        DependencyKind::AfterAny => true,
        DependencyKind::AfterOk => state == TerminalState::Completed,
        DependencyKind::AfterNotOk => state != TerminalState::Completed,
    }
}
