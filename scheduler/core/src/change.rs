//! Changes that users ask for: cancel, hold, release, requeue.

use cohabit_types::{
    ChangeResult, JobChange, JobEventKind, JobId, JobPhase, JobState, Principal, ReasonCode, Refusal,
    RefusalCode, Reply, StopReason,
};

use crate::requests::may_change;
use crate::turn::Transition;

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

    /// An array as a whole is changed if any member is; a member that cannot be is passed over.
    fn change_members(&mut self, change: JobChange, array: JobId, members: &[JobId]) -> ChangeResult {
        let verdicts: Vec<ChangeResult> =
            members.iter().map(|member| self.change_one(change, *member)).collect();
        let any = |wanted: ChangeResult| verdicts.contains(&wanted);
        match (any(ChangeResult::Done), any(ChangeResult::Already)) {
            (true, _) => ChangeResult::Done,
            (false, true) => ChangeResult::Already,
            (false, false) => {
                let verb = change.verb();
                refused(
                    RefusalCode::WrongState,
                    format!("no member of array {array} is in a state to {verb} it"),
                )
            }
        }
    }

    fn change_one(&mut self, change: JobChange, id: JobId) -> ChangeResult {
        let Some(job) = self.head.jobs.get(&id) else {
            return refused(RefusalCode::NotFound, format!("there is no job {id}"));
        };
        let state = job.state;
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
                self.end_job(id, JobState::Cancelled, ReasonCode::CancelledByUser);
                ChangeResult::Done
            }
            JobPhase::Placed => self.stop(id, StopReason::Cancelled),
            JobPhase::Ended if state == JobState::Cancelled => ChangeResult::Already,
            JobPhase::Ended => {
                refused(RefusalCode::WrongState, format!("job {id} has ended already: it is {state}"))
            }
        }
    }

    fn hold(&mut self, id: JobId, state: JobState) -> ChangeResult {
        match state.phase() {
            JobPhase::Waiting if state == JobState::Held => ChangeResult::Already,
            JobPhase::Waiting => {
                self.record_event(id, JobEventKind::Held);
                self.set_state(id, JobState::Held);
                self.refresh_eligibility(id);
                ChangeResult::Done
            }
            JobPhase::Placed | JobPhase::Ended => refused(
                RefusalCode::WrongState,
                format!("only a pending job can be held, job {id} is {state}"),
            ),
        }
    }

    fn release_hold(&mut self, id: JobId, state: JobState) -> ChangeResult {
        match state.phase() {
            JobPhase::Waiting if state == JobState::Pending => ChangeResult::Already,
            JobPhase::Waiting => {
                self.record_event(id, JobEventKind::Released);
                self.set_state(id, JobState::Pending);
                self.refresh_eligibility(id);
                ChangeResult::Done
            }
            JobPhase::Placed | JobPhase::Ended => refused(
                RefusalCode::WrongState,
                format!("only a held job can be released, job {id} is {state}"),
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

    /// A stop under way is joined; only a cancellation overrules what was to come after it.
    fn stop(&mut self, id: JobId, why: StopReason) -> ChangeResult {
        let attempt = self.head.job_mut(id).and_then(|job| job.live_attempt_mut());
        match attempt.map(|attempt| &mut attempt.stopping) {
            Some(Some(underway)) if *underway == why => ChangeResult::Already,
            Some(Some(underway)) if why == StopReason::Cancelled => {
                *underway = why;
                ChangeResult::Done
            }
            Some(Some(underway)) => refused(
                RefusalCode::WrongState,
                format!("job {id} is being stopped already because {}", underway.clause()),
            ),
            Some(None) => {
                self.stop_attempt(id, why);
                ChangeResult::Done
            }
            None => refused(RefusalCode::WrongState, format!("job {id} has ended already")),
        }
    }
}

fn refused(code: RefusalCode, message: String) -> ChangeResult {
    ChangeResult::Refused(Refusal::new(code, message))
}
