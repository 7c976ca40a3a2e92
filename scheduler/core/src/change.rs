//! Changes that users ask for: cancel, hold, release, requeue.

use cohabit_types::{
    By, Happening, JobChange, JobId, JobState, Life, ReasonCode, Refusal, RefusalCode, Reply, StopReason,
    Verdict,
};

use crate::requests::may_change;
use crate::turn::Turn;

impl Turn<'_> {
    pub(crate) fn change_all(&mut self, by: &By, change: JobChange, jobs: &[JobId]) -> Reply {
        Reply::Changed(jobs.iter().map(|job| (*job, self.change(by, change, *job))).collect())
    }

    fn change(&mut self, by: &By, change: JobChange, id: JobId) -> Verdict {
        let Some(submission) = self.head.submissions.get(&id.number) else {
            return refused(RefusalCode::NotFound, format!("there is no job {id}"));
        };
        if let Err(refusal) = may_change(by, &submission.user, change, id) {
            return Verdict::Refused(refusal);
        }
        if self.head.is_array(id) {
            let members = submission.jobs(id.number);
            return self.change_members(change, id, &members);
        }
        self.change_one(change, id)
    }

    /// An array as a whole is changed if any member is; a member that cannot be is passed over.
    fn change_members(&mut self, change: JobChange, array: JobId, members: &[JobId]) -> Verdict {
        let verdicts: Vec<Verdict> = members.iter().map(|member| self.change_one(change, *member)).collect();
        let any = |wanted: Verdict| verdicts.contains(&wanted);
        match (any(Verdict::Done), any(Verdict::Already)) {
            (true, _) => Verdict::Done,
            (false, true) => Verdict::Already,
            (false, false) => {
                let verb = change.verb();
                refused(
                    RefusalCode::WrongState,
                    format!("no member of array {array} is in a state to {verb} it"),
                )
            }
        }
    }

    fn change_one(&mut self, change: JobChange, id: JobId) -> Verdict {
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

    fn cancel(&mut self, id: JobId, state: JobState) -> Verdict {
        match state.life() {
            Life::Waiting => {
                self.end_job(id, JobState::Cancelled, ReasonCode::CancelledByUser);
                Verdict::Done
            }
            Life::Placed => self.stop(id, StopReason::Cancelled),
            Life::Ended if state == JobState::Cancelled => Verdict::Already,
            Life::Ended => {
                refused(RefusalCode::WrongState, format!("job {id} has ended already: it is {state}"))
            }
        }
    }

    fn hold(&mut self, id: JobId, state: JobState) -> Verdict {
        match state.life() {
            Life::Waiting if state == JobState::Held => Verdict::Already,
            Life::Waiting => {
                self.tell(id, Happening::Held);
                self.set_state(id, JobState::Held);
                self.refresh_eligibility(id);
                Verdict::Done
            }
            Life::Placed | Life::Ended => refused(
                RefusalCode::WrongState,
                format!("only a pending job can be held, job {id} is {state}"),
            ),
        }
    }

    fn release_hold(&mut self, id: JobId, state: JobState) -> Verdict {
        match state.life() {
            Life::Waiting if state == JobState::Pending => Verdict::Already,
            Life::Waiting => {
                self.tell(id, Happening::Released);
                self.set_state(id, JobState::Pending);
                self.refresh_eligibility(id);
                Verdict::Done
            }
            Life::Placed | Life::Ended => refused(
                RefusalCode::WrongState,
                format!("only a held job can be released, job {id} is {state}"),
            ),
        }
    }

    fn requeue(&mut self, id: JobId, state: JobState) -> Verdict {
        match state.life() {
            Life::Waiting => Verdict::Already,
            Life::Placed => self.stop(id, StopReason::Requeued),
            Life::Ended => {
                self.revive(id);
                Verdict::Done
            }
        }
    }

    /// A stop under way is joined; only a cancellation overrules what was to come after it.
    fn stop(&mut self, id: JobId, why: StopReason) -> Verdict {
        let attempt = self.head.job_mut(id).and_then(|job| job.live_attempt_mut());
        match attempt.map(|attempt| &mut attempt.stopping) {
            Some(Some(underway)) if *underway == why => Verdict::Already,
            Some(Some(underway)) if why == StopReason::Cancelled => {
                *underway = why;
                Verdict::Done
            }
            Some(Some(underway)) => refused(
                RefusalCode::WrongState,
                format!("job {id} is being stopped already because {}", underway.clause()),
            ),
            Some(None) => {
                self.stop_attempt(id, why);
                Verdict::Done
            }
            None => refused(RefusalCode::WrongState, format!("job {id} has ended already")),
        }
    }
}

fn refused(code: RefusalCode, message: String) -> Verdict {
    Verdict::Refused(Refusal::new(code, message))
}
