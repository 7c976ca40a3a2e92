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
    /// Applies a dependency on an earlier job that has ended already.
    pub(crate) fn settle_dependency(&mut self, jobs: &[JobId], dependency: Dependency) {
        if let Some(state) = self.head.final_state(dependency.job) {
            for id in jobs {
                self.dependency_ended(*id, dependency.job, state);
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

    fn dependency_ended(&mut self, id: JobId, earlier: JobId, state: TerminalState) {
        // A dependent that was cancelled meanwhile may be forgotten before the job that it waited for ends.
        let Some(submission) = self.head.submissions.get(&id.number) else { return };
        let depends_on = submission.spec.depends_on.iter().filter(|it| it.job == earlier);
        let satisfied = depends_on.map(|it| it.when).all(|when| satisfies(when, state));
        let waiting = self.head.job_mut(id).and_then(Job::waiting_mut);
        if !waiting.is_some_and(|waiting| waiting.waits_for.remove(&earlier)) {
            return;
        }
        match satisfied {
            true => self.refresh_eligibility(id),
            false => self.end_job(id, TerminalState::Cancelled, ReasonCode::DependencyFailed),
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
