//! What happens when a deadline comes. An alarm is only a reminder: the state says whether there is still
//! something to do.

use cohabit_types::{Cause, JobId, Span, Time};

use crate::alarm::Alarm;
use crate::node::Node;
use crate::transition::Transition;

impl Transition<'_> {
    /// Handles every alarm that is due, and forgets what was kept for long enough.
    pub(crate) fn alarm(&mut self) {
        self.cause = Cause::Clock;
        while let Some((at, alarm)) = self.head.alarms.first().copied().filter(|(at, _)| *at <= self.now) {
            self.head.alarms.remove(&(at, alarm));
            match alarm {
                Alarm::NodeLost(node) => self.give_up_unreachable_node(node),
                Alarm::JobEligible(job) => self.refresh_eligibility(job),
                Alarm::NodeRetry(node) => self.end_node_pause(node),
                Alarm::DrainDeadline(node) => self.clear_drained_node(node),
                Alarm::JobClosing(job) => self.stop_before_reservation(job),
                Alarm::JobIdle(job) => self.stop_idle_at_last(job),
                Alarm::Reservation(number) => self.advance_reservation(number),
            }
        }
        if self.head.next_plan_at.is_some_and(|at| at <= self.now) {
            self.head.next_plan_at = None;
            self.reconsider();
        }
        self.forget_old_jobs();
        self.archive_old_submissions();
        self.forget_old_nodes();
    }

    pub(crate) fn set_alarm(&mut self, at: Time, alarm: Alarm) {
        self.head.alarms.insert((at, alarm));
    }

    fn forget_old_jobs(&mut self) {
        let retention = self.head.config.retention;
        while let Some((ended_at, job)) = self.head.ended.first().copied() {
            if ended_at + retention > self.now {
                return;
            }
            self.head.ended.remove(&(ended_at, job));
            self.forget(job, ended_at);
        }
    }

    fn forget(&mut self, job: JobId, ended_at: Time) {
        if let Some(forgotten) = self.head.jobs.remove(&job) {
            self.count_history(job.number, 0, forgotten.history_weight());
        }
        if let Some(submission) = self.head.submissions.get(&job.number) {
            self.head.volatile.applications.forget_main(job, submission);
        }
        self.head.volatile.revisions.remove(&job);
        let members = (JobId::new(job.number))..=(JobId::member(job.number, u32::MAX));
        if self.head.jobs.range(members).next().is_none() {
            // Of an array, the member that ended last.
            self.head.ended_submissions.remove(&(ended_at, job.number));
            self.forget_submission(job.number);
        }
    }

    fn forget_submission(&mut self, number: u64) {
        self.head.volatile.revisions.remove(&JobId::new(number));
        self.head.volatile.traits.remove(&number);
        let Some(submission) = self.head.submissions.remove(&number) else { return };
        self.head.volatile.usage.remove(&submission);
        self.forget_idempotency_key(&submission.user, submission.idempotency_key.as_deref());
    }

    pub(crate) fn forget_idempotency_key(&mut self, user: &str, key: Option<&str>) {
        let (Some(key), Some(keys)) = (key, self.head.idempotency_keys.get_mut(user)) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.head.idempotency_keys.remove(user);
        }
    }

    /// Forgets nodes that have been lost for a hundred times `lost_after`. One that a live attempt holds
    /// stays: other ranks of a gang may take long to end.
    fn forget_old_nodes(&mut self) {
        let kept_for: Span = self.head.config.lost_after * 100;
        let now = self.now;
        let is_old = |node: &Node| now.since(node.link_changed_at) > kept_for;
        let nodes = &mut self.head.nodes;
        self.head.volatile.lost_nodes.retain(|id| {
            let lost = nodes.get(id).filter(|node| node.is_lost());
            let is_forgotten = lost.is_some_and(|node| node.jobs.is_empty() && is_old(node));
            let stays = lost.is_some() && !is_forgotten;
            if is_forgotten {
                nodes.remove(id);
            }
            stays
        });
    }
}
