//! Updates of waiting jobs: what users may still change about them.
//!
//! All members of an array share one specification, so an array is updated as a whole: members that run keep
//! what their attempt was started with.

use std::sync::Arc;

use cohabit_types::{
    ChangeResult, JobEventKind, JobId, JobPhase, JobSettings, JobSpec, Principal, Refusal, RefusalCode,
    Reply, TimeLimitSetting,
};

use crate::alarm::Alarm;
use crate::head::Head;
use crate::requests::check_owner;
use crate::transition::Transition;

impl Transition<'_> {
    pub(crate) fn update_all(&mut self, by: &Principal, update: &JobSettings, jobs: &[JobId]) -> Reply {
        Reply::Changed(jobs.iter().map(|job| (*job, self.update(by, update, *job))).collect())
    }

    fn update(&mut self, by: &Principal, update: &JobSettings, id: JobId) -> ChangeResult {
        if let Some(result) = self.head.not_updated(by, update, id) {
            return result;
        }
        let is_waiting = |job: &JobId| self.head.jobs.get(job).is_some_and(|it| it.waiting().is_some());
        let Some(submission) = self.head.submissions.get(&id.number) else { return no_such_job(id) };
        let waiting: Vec<JobId> = submission.jobs(id.number).into_iter().filter(is_waiting).collect();
        // The places in the queue go by the old priority.
        waiting.iter().for_each(|job| self.head.leave_queue(*job));
        if let Some(submission) = self.head.submission_mut(id.number) {
            submission.spec = Arc::new(updated(&submission.spec, update));
        }
        self.head.volatile.traits.remove(&id.number);
        self.head.keep_traits(id.number);
        for job in waiting {
            self.set_begin(job, update);
            // The history of a member that was touched by nothing else is shared by all.
            if job.index.is_none() {
                self.record_event(job, JobEventKind::Updated(update.to_string()));
            }
            self.refresh_eligibility(job);
            self.changed(job);
        }
        self.head.replan_needed = true;
        ChangeResult::Done
    }

    /// A new begin time counts for a job that has not run yet.
    fn set_begin(&mut self, id: JobId, update: &JobSettings) {
        let Some(begin) = update.begin.filter(|_| self.head.jobs[&id].last_attempt().is_none()) else {
            return;
        };
        let now = self.now;
        if let Some(waiting) = self.job_mut(id).waiting_mut() {
            waiting.not_before = Some(begin).filter(|at| *at > now);
        }
        if begin > now {
            self.set_alarm(begin, Alarm::JobEligible(id));
        }
    }
}

impl Head {
    /// The reply to an update that changes nothing; none where it changes something.
    pub(crate) fn not_updated(
        &self,
        by: &Principal,
        update: &JobSettings,
        id: JobId,
    ) -> Option<ChangeResult> {
        self.check_update(by, update, id).err().map(ChangeResult::Refused)
    }

    fn check_update(&self, by: &Principal, update: &JobSettings, id: JobId) -> Result<(), Refusal> {
        let refused = |code, message: String| Err(Refusal::new(code, message));
        let Some(submission) = self.submissions.get(&id.number) else {
            let message = format!("there is no job {id} that waits");
            return refused(RefusalCode::NotFound, message);
        };
        check_owner(by, &submission.user, "update", id)?;
        if id.index.is_some() {
            let message =
                format!("the members of array {} share their settings: update {0} as a whole", id.number);
            return refused(RefusalCode::Invalid, message);
        }
        let waits =
            |job: &JobId| self.jobs.get(job).is_some_and(|it| it.state().phase() == JobPhase::Waiting);
        if !submission.jobs(id.number).iter().any(waits) {
            let state =
                self.jobs.get(&id).map_or(String::new(), |job| format!(", and job {id} is {}", job.state()));
            let message = format!("only jobs that wait can be updated{state}");
            return refused(RefusalCode::WrongState, message);
        }
        let spec = updated(&submission.spec, update);
        spec.check().map_err(|why| Refusal::new(RefusalCode::Invalid, why))
    }
}

fn updated(spec: &JobSpec, update: &JobSettings) -> JobSpec {
    let mut spec = spec.clone();
    spec.priority = update.priority.unwrap_or(spec.priority);
    spec.retry.limit = update.retries.unwrap_or(spec.retry.limit);
    spec.begin = update.begin.or(spec.begin);
    match update.time_limit {
        Some(TimeLimitSetting::Unlimited) => spec.time_limit = None,
        Some(TimeLimitSetting::Limit(limit)) => spec.time_limit = Some(limit),
        None => {}
    }
    spec
}

fn no_such_job(id: JobId) -> ChangeResult {
    ChangeResult::Refused(Refusal::new(RefusalCode::NotFound, format!("there is no job {id}")))
}
