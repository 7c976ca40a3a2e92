//! Changes that users request: cancel, hold, release, requeue.

use cohabit_types::{
    ChangeResult, JobChange, JobEventKind, JobId, JobPhase, JobState, Principal, ReasonCode, Refusal,
    RefusalCode, Reply, StopReason,
};

use crate::job::{JobStatus, TerminalState};
use crate::requests::may_change;
use crate::transition::Transition;

impl Transition<'_> {
    pub(crate) fn change_all(&mut self, by: &Principal, change: JobChange, jobs: &[JobId]) -> Reply {
        Reply::Changed(jobs.iter().map(|job| (*job, self.change(by, change, *job))).collect())
    }

    fn change(&mut self, by: &Principal, change: JobChange, id: JobId) -> ChangeResult {
        let Some(submission) = self.head.submissions.get(&id.number) else {
            return refused(RefusalCode::NotFound, format!("there is no job {id}"));
        };
        if let Err(refusal) = may_change(by, &submission.user, change, id) {
            return ChangeResult::Refused(refusal);
        }
        if self.head.is_array(id) {
            let members = submission.jobs(id.number);
            return self.change_members(change, id, &members);
        }
        self.change_one(change, id)
    }

    /// Changes every member that can be changed. The array counts as changed if any member was.
    fn change_members(&mut self, change: JobChange, array: JobId, members: &[JobId]) -> ChangeResult {
        let results: Vec<ChangeResult> =
            members.iter().map(|member| self.change_one(change, *member)).collect();
        let any = |wanted: ChangeResult| results.contains(&wanted);
        match (any(ChangeResult::Done), any(ChangeResult::Already)) {
            (true, _) => ChangeResult::Done,
            (false, true) => ChangeResult::Already,
            (false, false) => {
                let verb = change.verb();
                refused(
                    RefusalCode::WrongState,
                    format!("no member of array {array} is in a state in which you can {verb} it"),
                )
            }
        }
    }

    fn change_one(&mut self, change: JobChange, id: JobId) -> ChangeResult {
        let Some(job) = self.head.jobs.get(&id) else {
            return refused(RefusalCode::NotFound, format!("there is no job {id}"));
        };
        let state = job.state();
        match change {
            JobChange::Cancel => self.cancel(id, state),
            JobChange::Hold => self.hold(id, state),
            JobChange::Release => self.release_hold(id, state),
            JobChange::Requeue => self.requeue(id, state),
        }
    }

    fn cancel(&mut self, id: JobId, state: JobState) -> ChangeResult {
        match state.phase() {
            JobPhase::Waiting => {
                self.end_job(id, TerminalState::Cancelled, ReasonCode::CancelledByUser);
                ChangeResult::Done
            }
            JobPhase::Placed => self.stop(id, StopReason::Cancelled),
            JobPhase::Ended if state == JobState::Cancelled => ChangeResult::Already,
            JobPhase::Ended => {
                refused(RefusalCode::WrongState, format!("job {id} has already ended: it is {state}"))
            }
        }
    }

    fn hold(&mut self, id: JobId, state: JobState) -> ChangeResult {
        match state.phase() {
            JobPhase::Waiting if state == JobState::Held => ChangeResult::Already,
            JobPhase::Waiting => {
                self.set_held(id, true);
                ChangeResult::Done
            }
            JobPhase::Placed | JobPhase::Ended => refused(
                RefusalCode::WrongState,
                format!("only a pending job can be held, and job {id} is {state}"),
            ),
        }
    }

    fn set_held(&mut self, id: JobId, held: bool) {
        self.record_event(id, if held { JobEventKind::Held } else { JobEventKind::Released });
        self.change_status(id, |job| {
            if let Some(waiting) = job.waiting_mut() {
                waiting.held = held;
            }
        });
        self.refresh_eligibility(id);
    }

    fn release_hold(&mut self, id: JobId, state: JobState) -> ChangeResult {
        match state.phase() {
            JobPhase::Waiting if state == JobState::Pending => ChangeResult::Already,
            JobPhase::Waiting => {
                self.set_held(id, false);
                ChangeResult::Done
            }
            JobPhase::Placed | JobPhase::Ended => refused(
                RefusalCode::WrongState,
                format!("only a held job can be released, and job {id} is {state}"),
            ),
        }
    }

    fn requeue(&mut self, id: JobId, state: JobState) -> ChangeResult {
        match state.phase() {
            JobPhase::Waiting => ChangeResult::Already,
            JobPhase::Placed => self.stop(id, StopReason::Requeued),
            JobPhase::Ended => {
                self.requeue_ended_job(id);
                ChangeResult::Done
            }
        }
    }

    /// Stops a placed job. Only a cancellation replaces the reason of a stop that has begun already.
    fn stop(&mut self, id: JobId, why: StopReason) -> ChangeResult {
        let ended = || refused(RefusalCode::WrongState, format!("job {id} has already ended"));
        let Some(job) = self.head.job_mut(id) else { return ended() };
        match &mut job.status {
            JobStatus::Stopping(_, present) if *present == why => ChangeResult::Already,
            JobStatus::Stopping(_, present) if why == StopReason::Cancelled => {
                *present = why;
                ChangeResult::Done
            }
            JobStatus::Stopping(_, present) => {
                let because = present.clause();
                refused(
                    RefusalCode::WrongState,
                    format!("job {id} is already being stopped because {because}"),
                )
            }
            JobStatus::Running(_) => {
                self.stop_attempt(id, why);
                ChangeResult::Done
            }
            JobStatus::Waiting(_) | JobStatus::Ended(_) => ended(),
        }
    }
}

fn refused(code: RefusalCode, message: String) -> ChangeResult {
    ChangeResult::Refused(Refusal::new(code, message))
}
