//! Interactive jobs that do nothing: their workers tell, and their places go to jobs that wait.
//!
//! The policy stops one for a job that its place helps (`Action::StopIdle`), once it has done nothing for
//! `idle-stop`; nobody has to wait for one that does nothing for [`IDLE_AT_MOST`].

use cohabit_types::{
    AttemptId, FeedKind, IdleRecord, JobEvent, JobEventKind, JobId, JobSpec, NodeId, Span, StopReason, Time,
};

use crate::alarm::Alarm;
use crate::head::Head;
use crate::transition::Transition;

/// An interactive job that does nothing for so long is stopped even if nobody waits for its place.
pub(crate) const IDLE_AT_MOST: Span = Span::from_secs(8 * 3_600);

impl Transition<'_> {
    /// An attempt has come to do nothing. A worker that joins again repeats the report of a stretch that
    /// lasts.
    pub(crate) fn left_idle(&mut self, attempt: AttemptId, since: Time, quiet_for: Span) {
        let id = attempt.job;
        let is_told = |event: &JobEvent| {
            let JobEventKind::Idle { attempt: of, since: told, .. } = event.kind else { return false };
            (of, told) == (attempt, since)
        };
        let is_new = !self.head.jobs[&id].events.iter().any(is_told);
        // The clock of the worker may be wrong.
        let own_since = self.now - quiet_for;
        let Some(live) = self.job_mut(id).live_attempt_mut() else { return };
        live.idle_since = Some(live.idle_since.filter(|_| !is_new).unwrap_or(own_since));
        if let Some(at_last) = self.head.idle_at_most_until(id) {
            self.set_alarm(at_last, Alarm::JobIdle(id));
        }
        if is_new {
            let idle = JobEventKind::Idle { attempt, since, quiet_for };
            let text = match self.head.idle_limits(id) {
                Some(limits) => format!("{idle}; {limits}"),
                None => idle.to_string(),
            };
            self.record_event(id, idle);
            self.tell_of_job(id, FeedKind::Idle, text);
        }
        self.changed(id);
    }

    /// An attempt that did nothing does something again.
    pub(crate) fn active_again(&mut self, attempt: AttemptId) {
        if let Some(live) = self.job_mut(attempt.job).live_attempt_mut() {
            live.idle_since = None;
        }
        self.changed(attempt.job);
    }

    /// What the ranks on a node do is unknown until its worker tells again, over its next link.
    pub(crate) fn forget_idleness(&mut self, node: NodeId) {
        for id in self.head.live_jobs_on(node) {
            let live = self.job_mut(id).live_attempt_mut();
            if live.is_some_and(|live| live.idle_since.take().is_some()) {
                self.changed(id);
            }
        }
    }

    /// The policy stops a job because it does nothing.
    pub(crate) fn stop_idle(&mut self, id: JobId, why: &str) {
        if self.head.idle_from(id).is_some_and(|from| from <= self.now) {
            self.stop_attempt(id, StopReason::Idle);
        } else {
            let active = format!("the plan stops it as idle ({why}), but it is not");
            self.record_event(id, JobEventKind::PlanDropped(active));
        }
    }

    /// A job may have done nothing for as long as it may at most.
    pub(crate) fn stop_idle_at_last(&mut self, id: JobId) {
        if self.head.idle_at_most_until(id).is_some_and(|at| at <= self.now) {
            self.stop_attempt(id, StopReason::Idle);
        }
    }
}

impl Head {
    /// After how long the worker of an interactive job tells that it does nothing: two thirds of the time
    /// after which it may be stopped, so that its user can do something about it.
    pub(crate) fn idle_told_after(&self, spec: &JobSpec) -> Option<Span> {
        let stop = self.config.idle_stop.filter(|_| spec.interactive)?;
        Some(Span::from_micros(stop.as_micros() / 3 * 2))
    }

    /// For a running interactive job that does nothing: when its place may be given to another one.
    pub(crate) fn idle_from(&self, id: JobId) -> Option<Time> {
        Some(self.stoppable_idle_since(id)? + self.config.idle_stop?)
    }

    /// For a running interactive job that does nothing: when it is stopped at last.
    fn idle_at_most_until(&self, id: JobId) -> Option<Time> {
        Some(self.stoppable_idle_since(id)? + IDLE_AT_MOST.max(self.config.idle_stop?))
    }

    /// When a running job reaches its time limit.
    fn time_limit_at(&self, id: JobId) -> Option<Time> {
        let limit = self.submissions.get(&id.number)?.spec.time_limit?;
        Some(self.jobs.get(&id)?.live_attempt()?.started_at + limit)
    }

    /// What the record of a job says while it does nothing.
    pub(crate) fn idle_record(&self, id: JobId, since: Time) -> IdleRecord {
        let at_last = self.idle_at_most_until(id);
        let stop_at = at_last.map(|at| self.time_limit_at(id).map_or(at, |limit| limit.min(at)));
        IdleRecord { since, stop_from: self.idle_from(id), stop_at }
    }

    /// What becomes of an interactive job that does nothing.
    pub(crate) fn idle_limits(&self, id: JobId) -> Option<String> {
        let (at_last, stop) = (self.idle_at_most_until(id)?, self.config.idle_stop?);
        let in_any_case = match self.time_limit_at(id).is_some_and(|limit| limit <= at_last) {
            true => "at its time limit".to_owned(),
            false => format!("after {}", IDLE_AT_MOST.max(stop)),
        };
        Some(format!(
            "it is interactive, so it is stopped after {stop} without work if a job waits for its place, and {in_any_case} \
             in any case"
        ))
    }

    fn stoppable_idle_since(&self, id: JobId) -> Option<Time> {
        let job = self.jobs.get(&id).filter(|job| job.stop_requested().is_none())?;
        // A worker tells of its own node only.
        let live = job.live_attempt().filter(|live| live.placement.parts.len() == 1)?;
        live.idle_since.filter(|_| self.is_interactive(id))
    }

    fn is_interactive(&self, id: JobId) -> bool {
        self.submissions.get(&id.number).is_some_and(|submission| submission.spec.interactive)
    }

    /// Whether a live attempt does nothing, as far as its worker told.
    pub(crate) fn is_idle(&self, attempt: AttemptId) -> bool {
        let live = self.jobs.get(&attempt.job).and_then(|job| job.live_attempt());
        live.is_some_and(|live| live.number == attempt.attempt && live.idle_since.is_some())
    }
}
