//! Changes of one job that keep the rest of the head in step: the counts of its submission, the sets of live
//! and ended jobs, the queue, and those who watch it.
//!
//! Every change of a job's phase goes through `change_status`. When and why a job changes is decided in
//! `lifecycle` and `job_changes`.

use std::sync::Arc;

use cohabit_types::{JobEvent, JobEventKind, JobId, NodeId, Order, StopReason};

use crate::interface::Effect;
use crate::job::Job;
use crate::transition::Transition;

impl Transition<'_> {
    /// Appends to the history of a job.
    pub(crate) fn record_event(&mut self, id: JobId, kind: JobEventKind) {
        let event = JobEvent { at: self.now, cause: self.cause.clone(), kind };
        let Some(job) = self.head.job_mut(id) else { return };
        let (added, removed) = job.record(event);
        self.count_history(id.number, added, removed);
    }

    /// The history of a job of this submission grew by so many bytes, and shrank by so many.
    pub(crate) fn count_history(&mut self, number: u64, added: u64, removed: u64) {
        if let Some(submission) = self.head.submissions.get(&number).filter(|_| added != removed) {
            self.head.volatile.usage.count_history(&submission.user, added, removed);
        }
    }

    pub(crate) fn job_mut(&mut self, id: JobId) -> &mut Job {
        self.head.job_mut(id).expect("the caller found this job")
    }

    /// Changes the phase of a job, and everything that depends on the phase.
    pub(crate) fn change_status(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        // Only a job that had ended may have been the last of its submission to end.
        let had_ended = self.head.jobs.get(&id).is_some_and(|job| job.ended().is_some());
        let all_ended_at = had_ended.then(|| self.head.archivable_end(id.number)).flatten();
        let job = self.job_mut(id);
        let (from, ended_before, attempts_before) =
            (job.state(), job.ended().copied(), job.attempts_weight());
        change(job);
        let (to, ended, attempts) = (job.state(), job.ended().copied(), job.attempts_weight());
        self.count_history(id.number, attempts, attempts_before);
        if let Some(end) = ended_before {
            self.head.ended.remove(&(end.at, id));
        }
        match ended {
            Some(end) => {
                self.head.active.remove(&id);
                self.head.ended.insert((end.at, id));
            }
            None => {
                self.head.active.insert(id);
            }
        }
        if let Some(submission) = self.head.submissions.get_mut(&id.number).map(Arc::make_mut) {
            submission.count(from, to);
            self.head.volatile.usage.change(submission, from, to);
            if let Some(end) = ended {
                submission.note_member_end(id, end.state);
            }
            match ended {
                Some(_) => self.head.volatile.applications.remove(id, submission),
                None => self.head.volatile.applications.insert(id, submission),
            }
        }
        if let Some(at) = all_ended_at {
            self.head.ended_submissions.remove(&(at, id.number));
        }
        if let Some(end) = ended
            && self.head.submissions.get(&id.number).is_some_and(|it| it.may_be_archived())
        {
            self.head.ended_submissions.insert((end.at, id.number));
        }
        self.changed(id);
    }

    /// Recomputes whether only room keeps the job waiting.
    pub(crate) fn refresh_eligibility(&mut self, id: JobId) {
        let now = self.now;
        self.changed_ids.jobs.insert(id);
        let Some(job) = self.head.jobs.get(&id) else { return };
        let Some(waiting) = job.waiting().filter(|_| job.is_eligible(now)) else {
            // The next job of a limited user takes the place of the one that leaves.
            self.head.replan_needed |=
                self.head.eligible.contains(&id) && self.head.limited_user(id.number).is_some();
            self.head.leave_queue(id);
            return;
        };
        let eligible_at = waiting.eligible_at;
        if self.head.queue_up(id) {
            self.head.replan_needed = true;
            // A new member of an array is not changed, so that it shares its memory with the others.
            if eligible_at != now
                && let Some(waiting) = self.job_mut(id).waiting_mut()
            {
                waiting.eligible_at = now;
            }
        }
    }

    /// Tells a worker to stop its ranks of an attempt.
    pub(crate) fn order_stop(&mut self, node: NodeId, id: JobId, attempt: u32, why: StopReason) {
        if let Some(key) = self.head.link_of(node) {
            self.effect(Effect::SendOrder(key, Order::Stop { attempt: id.attempt(attempt), why }));
        }
    }
}
