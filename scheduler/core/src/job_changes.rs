//! Changes that users request: cancel, hold, release, requeue, kill. And that of an application, which
//! withdraws its own children.

use cohabit_types::{
    Cause, ChangeResult, JobChange, JobEventKind, JobId, JobPhase, JobState, Principal, ReasonCode, Refusal,
    RefusalCode, Reply, StopReason,
};

use crate::head::Head;
use crate::job::JobStatus;
use crate::requests::may_change;
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

impl Transition<'_> {
    pub(crate) fn change_all(&mut self, by: &Principal, change: JobChange, jobs: &[JobId]) -> Reply {
        Reply::Changed(jobs.iter().map(|job| (*job, self.change(by, change, *job))).collect())
    }

    fn change(&mut self, by: &Principal, change: JobChange, id: JobId) -> ChangeResult {
        if let Some(result) = self.head.unchanged(by, change, id) {
            return result;
        }
        let Some(submission) = self.head.submissions.get(&id.number) else { return not_restored(id) };
        if !self.head.is_array(id) {
            return self.change_one(change, id);
        }
        let members = submission.jobs(id.number);
        let results: Vec<ChangeResult> =
            members.iter().map(|member| self.change_one(change, *member)).collect();
        result_of_array(change, id, &results)
    }

    fn change_one(&mut self, change: JobChange, id: JobId) -> ChangeResult {
        if let Some(result) = self.head.unchanged_job(change, id) {
            return result;
        }
        let phase = self.head.jobs.get(&id).map(|job| job.state().phase());
        match (change, phase) {
            (JobChange::Cancel, Some(JobPhase::Waiting)) if self.head.prefetched(id).is_some() => {
                self.cancel_prefetched(id, StopReason::Cancelled);
            }
            (JobChange::Kill, Some(JobPhase::Waiting)) if self.head.prefetched(id).is_some() => {
                self.cancel_prefetched(id, StopReason::Killed);
            }
            (JobChange::Cancel | JobChange::Kill, Some(JobPhase::Waiting)) => {
                self.end_job(id, TerminalState::Cancelled, ReasonCode::CancelledByUser);
            }
            (JobChange::Withdraw, _) => return self.withdraw(id),
            (JobChange::Cancel, _) => self.stop(id, StopReason::Cancelled),
            (JobChange::Kill, _) => self.kill(id),
            (JobChange::Hold, _) => self.set_held(id, true),
            (JobChange::Release, _) => self.set_held(id, false),
            (JobChange::Requeue, Some(JobPhase::Placed)) => self.stop(id, StopReason::Requeued),
            (JobChange::Requeue, _) => self.requeue_ended_job(id),
        }
        ChangeResult::Done
    }

    /// Cancels a child on behalf of its application, which its history names.
    fn withdraw(&mut self, id: JobId) -> ChangeResult {
        let Some(application) = self.head.application_of(id) else { return no_part(id) };
        let by = std::mem::replace(&mut self.cause, Cause::Job(application.job));
        let result = self.change_one(JobChange::Cancel, id);
        self.cause = by;
        result
    }

    pub(crate) fn set_held(&mut self, id: JobId, held: bool) {
        self.record_event(id, if held { JobEventKind::Held } else { JobEventKind::Released });
        self.change_status(id, |job| {
            if let Some(waiting) = job.waiting_mut() {
                waiting.held = held;
            }
        });
        self.refresh_eligibility(id);
    }

    /// Stops a placed job. A cancellation replaces the reason of a stop that has begun already.
    fn stop(&mut self, id: JobId, why: StopReason) {
        let Some(job) = self.head.job_mut(id) else { return };
        match &mut job.status {
            JobStatus::Stopping(_, present) => *present = why,
            JobStatus::Running(_) => self.stop_attempt(id, why),
            JobStatus::Waiting(_) | JobStatus::Ended(_) => {}
        }
    }

    /// Kills a placed job. One that is being stopped is ordered to stop anew, which ends its grace.
    fn kill(&mut self, id: JobId) {
        let Some(job) = self.head.job_mut(id) else { return };
        if let JobStatus::Stopping(_, present) = &mut job.status {
            *present = StopReason::Killed;
        }
        self.stop_attempt(id, StopReason::Killed);
    }
}

impl Head {
    /// The result of a change that would change nothing; none where it would.
    pub(crate) fn unchanged(&self, by: &Principal, change: JobChange, id: JobId) -> Option<ChangeResult> {
        let Some(submission) = self.submissions.get(&id.number) else {
            return self.unchanged_archived(by, change, id);
        };
        if let Err(refusal) = may_change(by, &submission.user, change, id) {
            return Some(ChangeResult::Refused(refusal));
        }
        if !self.is_array(id) {
            return self.unchanged_job(change, id);
        }
        let members = submission.jobs(id.number).into_iter();
        let results = members.map(|member| self.unchanged_job(change, member)).collect::<Option<Vec<_>>>()?;
        Some(result_of_array(change, id, &results))
    }

    /// The same for an archived job. Only one that was restored can be queued again.
    fn unchanged_archived(&self, by: &Principal, change: JobChange, id: JobId) -> Option<ChangeResult> {
        let archived = self.archive.get(id.number).and_then(|it| Some((&it.user, it.state_of(id.index)?)));
        let Some((user, state)) = archived else { return Some(no_such_job(id)) };
        match may_change(by, user, change, id) {
            Err(refusal) => Some(ChangeResult::Refused(refusal)),
            Ok(()) => unchanged_end(change, id, state.job_state()),
        }
    }

    /// The same for a plain job or a member, without a look at permissions.
    fn unchanged_job(&self, change: JobChange, id: JobId) -> Option<ChangeResult> {
        let Some(job) = self.jobs.get(&id) else { return Some(no_such_job(id)) };
        let state = job.state();
        match (change, state.phase()) {
            (JobChange::Withdraw, _) if self.application_of(id).is_none() => Some(no_part(id)),
            (JobChange::Cancel | JobChange::Withdraw, JobPhase::Placed) => {
                self.unchanged_stop(id, StopReason::Cancelled)
            }
            (JobChange::Kill, JobPhase::Placed) => self.unchanged_stop(id, StopReason::Killed),
            (JobChange::Requeue, JobPhase::Ended) => {
                self.check_application_requeue(id).err().map(ChangeResult::Refused)
            }
            (_, JobPhase::Ended) => unchanged_end(change, id, state),
            (JobChange::Hold, JobPhase::Waiting) if state == JobState::Held => Some(ChangeResult::Already),
            (JobChange::Hold, JobPhase::Waiting) if self.prefetched(id).is_some() => {
                Some(wrong_state(format!("job {id} is about to begin: try again in a moment, or cancel it")))
            }
            (JobChange::Cancel | JobChange::Kill, JobPhase::Waiting)
                if self.prefetched(id).is_some_and(|it| it.cancelled.is_some()) =>
            {
                Some(ChangeResult::Already)
            }
            (JobChange::Release, JobPhase::Waiting) if state == JobState::Pending => {
                Some(ChangeResult::Already)
            }
            (JobChange::Hold, JobPhase::Placed) => Some(cannot_hold(id, state)),
            (JobChange::Release, JobPhase::Placed) => Some(cannot_release(id, state)),
            (JobChange::Requeue, JobPhase::Waiting) => Some(ChangeResult::Already),
            (JobChange::Requeue, JobPhase::Placed) => self.unchanged_stop(id, StopReason::Requeued),
            (
                JobChange::Cancel
                | JobChange::Kill
                | JobChange::Withdraw
                | JobChange::Hold
                | JobChange::Release,
                JobPhase::Waiting,
            ) => None,
        }
    }

    /// The same for a stop of a placed job. Only a cancellation replaces the reason of a stop that has begun,
    /// and nothing replaces one by force.
    fn unchanged_stop(&self, id: JobId, why: StopReason) -> Option<ChangeResult> {
        let present = self.jobs.get(&id)?.stop_requested()?;
        let refused =
            || wrong_state(format!("job {id} is already being stopped because {}", present.clause()));
        match (why, present) {
            _ if present == why => Some(ChangeResult::Already),
            (StopReason::Cancelled, StopReason::Killed) => Some(ChangeResult::Already),
            (StopReason::Cancelled | StopReason::Killed, _) => None,
            _ => Some(refused()),
        }
    }
}

/// The result of a change that would change nothing about a job that ended in this state.
fn unchanged_end(change: JobChange, id: JobId, state: JobState) -> Option<ChangeResult> {
    match change {
        JobChange::Cancel | JobChange::Kill | JobChange::Withdraw if state == JobState::Cancelled => {
            Some(ChangeResult::Already)
        }
        JobChange::Cancel | JobChange::Kill | JobChange::Withdraw => {
            Some(wrong_state(format!("job {id} has already ended: it is {state}")))
        }
        JobChange::Hold => Some(cannot_hold(id, state)),
        JobChange::Release => Some(cannot_release(id, state)),
        JobChange::Requeue => None,
    }
}

fn cannot_hold(id: JobId, state: JobState) -> ChangeResult {
    wrong_state(format!("only a pending job can be held, and job {id} is {state}"))
}

fn cannot_release(id: JobId, state: JobState) -> ChangeResult {
    wrong_state(format!("only a held job can be released, and job {id} is {state}"))
}

/// An array counts as changed if any member was.
fn result_of_array(change: JobChange, array: JobId, members: &[ChangeResult]) -> ChangeResult {
    let verb = change.verb();
    match (members.contains(&ChangeResult::Done), members.contains(&ChangeResult::Already)) {
        (true, _) => ChangeResult::Done,
        (false, true) => ChangeResult::Already,
        (false, false) => {
            wrong_state(format!("no member of array {array} is in a state in which you can {verb} it"))
        }
    }
}

fn no_such_job(id: JobId) -> ChangeResult {
    refused(RefusalCode::NotFound, format!("there is no job {id}"))
}

/// The summary of the archive is all that is left in memory, and the rest did not come with the request.
fn not_restored(id: JobId) -> ChangeResult {
    let message = format!(
        "job {id} is archived, and what it ran could not be read: try again in a moment, or submit it again"
    );
    refused(RefusalCode::NotFound, message)
}

fn no_part(id: JobId) -> ChangeResult {
    wrong_state(format!("job {id} is no part of an application: cancel it"))
}

fn wrong_state(message: String) -> ChangeResult {
    refused(RefusalCode::WrongState, message)
}

fn refused(code: RefusalCode, message: String) -> ChangeResult {
    ChangeResult::Refused(Refusal::new(code, message))
}
