//! Jobs that wait for the end of others: checked at submission, told when the end comes.
//!
//! Ends are settled one after the other at the end of a turn: a long chain that falls must not become a deep
//! recursion, and an array of which many members end at once is told once.

use std::collections::BTreeSet;

use cohabit_types::{Cause, Dependency, DependencyKind, JobId, JobState, ReasonCode, Refusal, RefusalCode};

use crate::head::Head;
use crate::turn::Transition;

impl Transition<'_> {
    /// An earlier job that already ended counts at once.
    pub(crate) fn settle_dependency(&mut self, jobs: &[JobId], dependency: Dependency) {
        if let Some(state) = self.head.final_state(dependency.job) {
            for id in jobs {
                self.dependency_ended(*id, dependency.job, state);
            }
        }
    }

    /// Tells dependents of all that ended in this turn, and of what ends because of that.
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

    /// The end of its last member is the end of an array as a whole.
    fn settle_array(&mut self, array: JobId) {
        if let Some(state) = self.head.final_state(array) {
            self.publish_end(array);
            self.wake_dependents(array, state);
        }
    }

    fn wake_dependents(&mut self, earlier: JobId, state: JobState) {
        self.cause = Cause::Job(earlier);
        for dependent in self.head.dependents.remove(&earlier).unwrap_or_default() {
            self.dependency_ended(dependent, earlier, state);
        }
    }

    fn dependency_ended(&mut self, id: JobId, earlier: JobId, state: JobState) {
        // One that was cancelled meanwhile may have been forgotten before the job that it waited for ended.
        let Some(submission) = self.head.submissions.get(&id.number) else { return };
        let depends_on = submission.spec.depends_on.iter().filter(|it| it.job == earlier);
        let satisfied = depends_on.map(|it| it.when).all(|when| satisfies(when, state));
        let Some(job) = self.head.job_mut(id) else { return };
        if !job.waits_for.remove(&earlier) || job.state.is_terminal() {
            return;
        }
        match satisfied {
            true => self.refresh_eligibility(id),
            false => self.end_job(id, JobState::Cancelled, ReasonCode::DependencyFailed),
        }
    }
}

impl Head {
    pub(crate) fn check_dependencies(&self, dependencies: &[Dependency]) -> Result<(), Refusal> {
        let known = |job: JobId| self.jobs.contains_key(&job) || self.is_array(job);
        match dependencies.iter().find(|dependency| !known(dependency.job)) {
            None => Ok(()),
            Some(unknown) => Err(Refusal::new(
                RefusalCode::NotFound,
                format!(
                    "it cannot depend on job {}: there is no such job, or it ended long ago",
                    unknown.job
                ),
            )),
        }
    }

    /// How a job, or an array as a whole, ended; none while it lives.
    pub(crate) fn final_state(&self, job: JobId) -> Option<JobState> {
        let state = match self.jobs.get(&job) {
            Some(job) => job.state,
            None => self.submissions.get(&job.number).filter(|it| it.has_ended())?.state(),
        };
        state.is_terminal().then_some(state)
    }
}

/// Whether the end of an earlier job is the one that was waited for.
fn satisfies(when: DependencyKind, state: JobState) -> bool {
    match when {
        DependencyKind::AfterAny => true,
        DependencyKind::AfterOk => state == JobState::Completed,
        DependencyKind::AfterNotOk => state != JobState::Completed,
    }
}
