//! The state that a job must have after one of its attempts has ended: the retry rules in short.

use cohabit_types::{JobId, JobState, StopReason};

use super::failure_cause::FailureCause;
use super::job::ran_isolated;
use super::observed::ObservedAttempt;
use super::{JobTransition, ReferenceModel};

impl ReferenceModel {
    /// Checks what became of the job when an attempt ended, and that an ended job stays ended.
    pub(super) fn check_end(&self, step: &JobTransition) -> Result<(), String> {
        let (before, after) = (&step.before, &step.after);
        let ended = after.attempts.last().filter(|attempt| {
            let known = before.attempt(attempt.number);
            attempt.ended_at.is_some() && known.is_none_or(|it| it.ended_at.is_none())
        });
        match ended {
            Some(attempt) => self.check_attempt_end(step, attempt),
            None if before.state.is_terminal() && after.state != before.state => {
                match self.jobs[&step.id].requests.requeued {
                    true => Ok(()),
                    false => Err(format!("it was {}, and is {}", before.state, after.state)),
                }
            }
            None if after.state.is_terminal() && !before.state.is_terminal() => {
                self.check_end_without_attempt(step.id, after)
            }
            None => Ok(()),
        }
    }

    /// Whether somebody asked for such a stop.
    fn was_asked_for(&self, id: JobId, attempt: &ObservedAttempt) -> bool {
        let requests = &self.jobs[&id].requests;
        match attempt.stopped {
            Some(StopReason::Cancelled) => requests.cancelled,
            // A child is killed with a root that was killed.
            Some(StopReason::Killed) => requests.cancelled || self.has_application_ended(id),
            Some(StopReason::ApplicationEnded) => self.has_application_ended(id),
            Some(StopReason::Requeued) => requests.requeued || self.may_have_been_reserved(id, attempt),
            Some(StopReason::Preempted) => requests.preempted,
            Some(StopReason::Reclaimed) => requests.reclaimed,
            Some(StopReason::Idle) => requests.stopped_as_idle,
            Some(StopReason::TimeLimit) => self.specs[&id.number].time_limit.is_some(),
            Some(_) | None => true,
        }
    }

    /// Whether a node of the attempt may have been reserved for others.
    fn may_have_been_reserved(&self, id: JobId, attempt: &ObservedAttempt) -> bool {
        let ranks = id.attempt(attempt.number).rank(0)..=id.attempt(attempt.number).rank(u32::MAX);
        let nodes = self.ordered.range(ranks).map(|(_, node)| node);
        let names = nodes.filter_map(|node| self.names.get(node)).flatten().cloned().collect();
        self.reserved.may_have_stopped(&self.users[&id.number], attempt, &names)
    }

    fn check_attempt_end(&self, step: &JobTransition, attempt: &ObservedAttempt) -> Result<(), String> {
        let (job, spec) = (&self.jobs[&step.id], &self.specs[&step.id.number]);
        let fault = FailureCause::of(attempt, job.first_bad.as_ref());
        let isolated = ran_isolated(&step.after.attempts);
        let well = attempt.succeeded() && attempt.stopped.is_none();
        // One failure may be attributed to a wrong memory prediction and then costs no retry.
        let spent = job.own_failures.saturating_sub(1)..=job.own_failures;
        let fits = self.was_asked_for(step.id, attempt)
            && match (step.after.state, fault) {
                (JobState::Completed, _) => well,
                (JobState::Cancelled, None) => {
                    let stopped = [
                        StopReason::Cancelled,
                        StopReason::Killed,
                        StopReason::ApplicationEnded,
                        StopReason::Idle,
                    ];
                    attempt.stopped.is_some_and(|why| stopped.contains(&why))
                }
                (JobState::Timeout, None) => {
                    attempt.stopped == Some(StopReason::TimeLimit) && !spec.requeue_on_timeout
                }
                (JobState::Pending, None) => match attempt.stopped {
                    Some(StopReason::TimeLimit) => spec.requeue_on_timeout,
                    stopped => matches!(
                        stopped,
                        Some(StopReason::Requeued | StopReason::Preempted | StopReason::Reclaimed)
                    ),
                },
                (JobState::Pending, Some(FailureCause::NoSpace)) => true,
                (JobState::Pending, Some(FailureCause::LostOrder)) => {
                    attempt.started_at < self.head_started_at
                }
                (JobState::Pending, Some(FailureCause::Cluster)) => {
                    job.node_failures <= self.config.node_failures
                }
                // Several nodes may be given up at one instant: a child waits again when its root ends.
                (JobState::Cancelled, Some(FailureCause::Cluster)) => {
                    job.node_failures <= self.config.node_failures && self.has_application_ended(step.id)
                }
                (JobState::NodeFail, Some(FailureCause::Cluster)) => {
                    job.node_failures > self.config.node_failures
                }
                (JobState::Pending, Some(FailureCause::Own)) => {
                    !isolated && *spent.start() <= spec.retry.limit
                }
                (JobState::Held, Some(FailureCause::Own)) => isolated && *spent.start() <= spec.retry.limit,
                (JobState::Failed | JobState::OutOfMemory, Some(FailureCause::Own)) => {
                    *spent.end() > spec.retry.limit
                }
                _ => false,
            };
        match fits {
            true => Ok(()),
            false => Err(format!(
                "attempt {} ended ({:?}, stopped {:?}, {} failures of its own, {} of the cluster), and it is {}",
                attempt.number,
                attempt.ranks.iter().map(|rank| &rank.outcome).collect::<Vec<_>>(),
                attempt.stopped,
                job.own_failures,
                job.node_failures,
                step.after.state
            )),
        }
    }
}
