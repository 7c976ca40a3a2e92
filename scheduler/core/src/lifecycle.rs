//! The life of a job: pending, placed, stopped, ended, queued again.
//!
//! Every change of state goes through `set_state`, so that the counts of arrays, the sets of live and ended
//! jobs and the watchers always agree.

use cohabit_types::{
    JobEvent, JobEventKind, JobId, JobState, NodeId, Notice, Order, Outcome, RankId, ReasonCode, Span,
    StartFailure, StopReason, Time,
};

use crate::alarm::Alarm;
use crate::door::Effect;
use crate::job::{Attempt, Job, RankPhase};
use crate::planning::PlannedStart;
use crate::turn::Transition;

/// A job that goes round in circles does not fill the memory: its first chapter and the latest ones are kept.
const MAX_JOB_EVENTS: usize = 200;
/// So many are dropped at once, so that the others need not move up for each.
const JOB_EVENTS_DROPPED_AT_ONCE: usize = 50;

/// What follows the end of an attempt.
enum AttemptDecision {
    End(JobState, ReasonCode),
    /// Again, after a pause.
    Requeue(Span),
}

impl Transition<'_> {
    pub(crate) fn record_event(&mut self, id: JobId, happening: JobEventKind) {
        let chapter = JobEvent { at: self.now, cause: self.cause.clone(), happening };
        let Some(job) = self.head.job_mut(id) else { return };
        if job.story.len() >= MAX_JOB_EVENTS {
            job.story.drain(1..=JOB_EVENTS_DROPPED_AT_ONCE);
        }
        job.story.push(chapter);
    }

    pub(crate) fn job_mut(&mut self, id: JobId) -> &mut Job {
        self.head.job_mut(id).expect("the caller found this job")
    }

    pub(crate) fn set_state(&mut self, id: JobId, to: JobState) {
        let now = self.now;
        let job = self.job_mut(id);
        let from = std::mem::replace(&mut job.state, to);
        let ended_before = job.ended_at;
        job.ended_at = if to.is_terminal() { Some(now) } else { None };
        if let Some(ended_at) = ended_before {
            self.head.ended.remove(&(ended_at, id));
        }
        if to.is_terminal() {
            self.head.unended.remove(&id);
            self.head.ended.insert((now, id));
        } else {
            self.head.unended.insert(id);
        }
        if let Some(submission) = self.head.submission_mut(id.number) {
            submission.count(from, to);
            if to.is_terminal() {
                submission.note_member_end(id, to);
            }
        }
        self.changed(id);
    }

    /// Recomputes whether only room keeps the job waiting.
    pub(crate) fn refresh_eligibility(&mut self, id: JobId) {
        let now = self.now;
        self.head.live.sight.note_job(id);
        let Some(job) = self.head.jobs.get(&id) else { return };
        let eligible_at = job.eligible_at;
        if !job.is_eligible(now) {
            self.head.leave_queue(id);
            return;
        }
        if self.head.queue_up(id) {
            self.head.plan_wanted = true;
            // A new member of an array stays one with the others.
            if eligible_at != now {
                self.job_mut(id).eligible_at = now;
            }
        }
    }

    pub(crate) fn start(&mut self, id: JobId, placing: PlannedStart) {
        let now = self.now;
        let (attempt, orders) = self.head.new_attempt(id, &placing, now);
        let happening = self.head.placed_event(id, &attempt, now, placing.why);
        let submission = self.head.submission_mut(id.number).expect("a job has a submission");
        submission.started_at = submission.started_at.or(Some(now));
        let demand = self.head.demand(id);
        for part in &attempt.placement.parts {
            self.head.node_mut(part.node).expect("a checked placement").take(id, &demand, part);
        }
        self.head.leave_queue(id);
        let job = self.job_mut(id);
        job.reason = ReasonCode::Running;
        job.not_before = None;
        job.attempts.push(attempt);
        self.record_event(id, happening);
        self.set_state(id, JobState::Running);
        for (key, order) in orders {
            self.effect(Effect::Tell(key, Order::Run(Box::new(order))));
        }
    }

    pub(crate) fn stop_attempt(&mut self, id: JobId, why: StopReason) {
        let Some(attempt) = self.job_mut(id).live_attempt_mut() else { return };
        attempt.stopping = Some(why);
        let (number, nodes) = (attempt.number, attempt.live_nodes());
        self.job_mut(id).reason = ReasonCode::Stopping;
        self.record_event(id, JobEventKind::Stopping(id.attempt(number), why));
        self.set_state(id, JobState::Completing);
        for node in nodes {
            self.order_stop(node, id, number, why);
        }
    }

    pub(crate) fn order_stop(&mut self, node: NodeId, id: JobId, attempt: u32, why: StopReason) {
        if let Some(key) = self.head.link_of(node) {
            self.effect(Effect::Tell(key, Order::Stop { attempt: id.attempt(attempt), why }));
        }
    }

    /// A rank of the live attempt ended, or was given up.
    pub(crate) fn rank_ended(&mut self, rank: RankId, outcome: Outcome) {
        let id = rank.attempt.job;
        self.record_event(id, JobEventKind::RankEnded { rank, outcome: outcome.clone() });
        if let Outcome::NotStarted(failure) = &outcome {
            self.note_start_failure(rank, failure);
        }
        let attempt = self.job_mut(id).live_attempt_mut().expect("the caller found the live attempt");
        let failed = !outcome.succeeded();
        if let Some(known) = attempt.ranks.get_mut(rank.rank as usize) {
            known.phase = RankPhase::Ended(outcome);
        }
        if failed && attempt.first_failure.is_none() {
            attempt.first_failure = Some(rank.rank);
        }
        if attempt.ranks.iter().all(|rank| !rank.is_live()) {
            self.attempt_ended(id);
        } else if failed && attempt.stopping.is_none() {
            self.stop_attempt(id, StopReason::GangBroken);
        } else {
            self.changed(id);
        }
    }

    /// What is to be remembered of the node on which a rank did not start.
    fn note_start_failure(&mut self, rank: RankId, failure: &StartFailure) {
        if let StartFailure::PortTaken(port) = failure {
            self.mark_port_taken(rank.attempt.job, *port);
        }
        if let StartFailure::NodeTrouble(what) = failure {
            let attempt = self.head.jobs[&rank.attempt.job].live_attempt();
            let node = attempt.and_then(|attempt| Some(attempt.ranks.get(rank.rank as usize)?.node));
            node.into_iter().for_each(|node| self.pause_node(node, what));
        }
    }

    fn attempt_ended(&mut self, id: JobId) {
        let now = self.now;
        let attempt = self.job_mut(id).live_attempt_mut().expect("the caller found the live attempt");
        attempt.ended_at = Some(now);
        let attempt = attempt.clone();
        // What is not journaled must not outlive the attempt, else replay would tell another story.
        self.head.live.progress.remove(&id.attempt(attempt.number));
        self.release(id, &attempt);
        match self.decide_after_attempt(id, &attempt) {
            AttemptDecision::End(state, reason) => self.end_job(id, state, reason),
            AttemptDecision::Requeue(pause) => self.requeue_after_attempt(id, &attempt, pause),
        }
    }

    fn release(&mut self, id: JobId, attempt: &Attempt) {
        let demand = self.head.demand(id);
        for part in &attempt.placement.parts {
            if let Some(node) = self.head.node_mut(part.node) {
                node.release(id, &demand, part);
            }
        }
        self.head.plan_wanted = true;
    }

    fn decide_after_attempt(&mut self, id: JobId, attempt: &Attempt) -> AttemptDecision {
        match attempt.effective_stop() {
            Some(StopReason::Cancelled) => {
                AttemptDecision::End(JobState::Cancelled, ReasonCode::CancelledByUser)
            }
            Some(StopReason::TimeLimit) => AttemptDecision::End(JobState::Timeout, ReasonCode::TimeLimit),
            Some(StopReason::Requeued | StopReason::Preempted) => AttemptDecision::Requeue(Span::ZERO),
            Some(StopReason::Superseded | StopReason::Orphaned) => self.node_failed(id, ReasonCode::NodeLost),
            Some(StopReason::MpsFaultVictim) => self.node_failed(id, ReasonCode::MpsFaultVictim),
            Some(StopReason::DeviceLost) => self.node_failed(id, ReasonCode::DeviceLost),
            Some(StopReason::Unenforced) => self.node_failed(id, ReasonCode::SharingUnenforced),
            Some(StopReason::MpsFault) => self.failed_by(id, attempt, JobState::Failed, ReasonCode::MpsFault),
            Some(StopReason::GpuMemory) => {
                self.failed_by(id, attempt, JobState::OutOfMemory, ReasonCode::GpuOom)
            }
            Some(StopReason::GangBroken) | None => self.decide_by_outcome(id, attempt),
        }
    }

    /// The first rank that ended badly speaks for all.
    fn decide_by_outcome(&mut self, id: JobId, attempt: &Attempt) -> AttemptDecision {
        let failure = |reason| (JobState::Failed, reason);
        let (state, reason) = match attempt.first_failed_outcome() {
            None => {
                let job = self.job_mut(id);
                (job.exit_code, job.signal) = (Some(0), None);
                return AttemptDecision::End(JobState::Completed, ReasonCode::Completed);
            }
            Some(Outcome::Lost(_)) => return self.node_failed(id, ReasonCode::ExecutorLost),
            Some(Outcome::NotStarted(StartFailure::PortTaken(_))) => {
                return self.node_failed(id, ReasonCode::CouldNotStart);
            }
            Some(Outcome::NotStarted(StartFailure::DeviceFenced(_))) => {
                return self.node_failed(id, ReasonCode::DeviceLost);
            }
            Some(Outcome::NotStarted(StartFailure::Unenforced(_))) => {
                return self.node_failed(id, ReasonCode::SharingUnenforced);
            }
            Some(Outcome::NotStarted(StartFailure::NodeTrouble(_))) => {
                return AttemptDecision::Requeue(Span::ZERO);
            }
            // Once in each life of the head at the most.
            Some(Outcome::NotStarted(StartFailure::OrderLost)) if self.head.is_of_earlier_life(attempt) => {
                return AttemptDecision::Requeue(Span::ZERO);
            }
            Some(Outcome::OutOfGpuMemory { .. }) => (JobState::OutOfMemory, ReasonCode::GpuOom),
            Some(Outcome::OutOfMemory { limit: Some(_), .. }) => {
                (JobState::OutOfMemory, ReasonCode::MemoryLimit)
            }
            Some(Outcome::OutOfMemory { limit: None, .. }) => (JobState::OutOfMemory, ReasonCode::Oom),
            Some(Outcome::Exited(_)) => failure(ReasonCode::ExitCode),
            Some(Outcome::Signalled(_)) => failure(ReasonCode::Signalled),
            Some(Outcome::NotStarted(cause)) => failure(start_failure(cause)),
        };
        self.failed_by(id, attempt, state, reason)
    }

    /// The job's own fault, unless memory was only predicted for it: counts against its retries.
    fn failed_by(
        &mut self,
        id: JobId,
        attempt: &Attempt,
        state: JobState,
        reason: ReasonCode,
    ) -> AttemptDecision {
        if self.attribute_to_prediction(id, attempt, reason) {
            return AttemptDecision::Requeue(Span::ZERO);
        }
        let retry = self.head.submissions[&id.number].spec.retry;
        let job = self.job_mut(id);
        (job.exit_code, job.signal) = match attempt.first_failed_outcome() {
            Some(
                Outcome::Exited(code)
                | Outcome::OutOfGpuMemory { code, .. }
                | Outcome::OutOfMemory { code, .. },
            ) => (Some(*code), None),
            Some(Outcome::Signalled(signal)) => (None, Some(*signal)),
            Some(Outcome::NotStarted(_) | Outcome::Lost(_)) | None => (None, None),
        };
        if job.failures >= retry.limit {
            return AttemptDecision::End(state, reason);
        }
        job.failures += 1;
        AttemptDecision::Requeue(retry.pause(job.failures))
    }

    /// Not the job's fault: counts against the cluster's patience with it.
    fn node_failed(&mut self, id: JobId, reason: ReasonCode) -> AttemptDecision {
        let limit = self.head.config.node_failures;
        let job = self.job_mut(id);
        job.node_failures += 1;
        match job.node_failures > limit {
            true => AttemptDecision::End(JobState::NodeFail, reason),
            false => AttemptDecision::Requeue(Span::ZERO),
        }
    }

    fn requeue_after_attempt(&mut self, id: JobId, attempt: &Attempt, pause: Span) {
        let limit = self.head.submissions[&id.number].spec.retry.limit;
        let failures = self.head.jobs[&id].failures;
        let (attempt, why) = (id.attempt(attempt.number), attempt.effective_stop());
        self.record_event(id, JobEventKind::Requeued { attempt, pause, failures, limit, why });
        self.wait_until(id, self.now + pause);
    }

    fn wait_until(&mut self, id: JobId, at: Time) {
        let now = self.now;
        let job = self.job_mut(id);
        job.not_before = Some(at).filter(|at| *at > now);
        job.reason = ReasonCode::WaitingForTurn;
        if at > now {
            self.set_alarm(at, Alarm::Job(id));
        }
        self.set_state(id, JobState::Pending);
        self.drop_prediction_if_too_large(id);
        self.refresh_eligibility(id);
    }

    /// A job that ended is queued as if it were new; attempts go on counting.
    pub(crate) fn requeue_ended_job(&mut self, id: JobId) {
        let attempt = self.head.jobs[&id].attempts.last().map_or(0, |attempt| attempt.number);
        let limit = self.head.submissions[&id.number].spec.retry.limit;
        let job = self.job_mut(id);
        (job.failures, job.node_failures) = (0, 0);
        (job.exit_code, job.signal) = (None, None);
        job.waits_for.clear();
        let pause = Span::ZERO;
        let attempt = id.attempt(attempt);
        self.record_event(id, JobEventKind::Requeued { attempt, pause, failures: 0, limit, why: None });
        self.wait_until(id, self.now);
        self.choose_worst_member(id.number);
    }

    /// A revived member no longer speaks for its array.
    fn choose_worst_member(&mut self, number: u64) {
        let members = self.head.jobs.range(JobId::new(number)..=JobId::member(number, u32::MAX));
        let ended: Vec<_> =
            members.filter(|(_, job)| job.state.is_terminal()).map(|(id, job)| (*id, job.state)).collect();
        let submission = self.head.submission_mut(number).expect("a job has a submission");
        submission.speaker = None;
        for (id, state) in ended {
            submission.note_member_end(id, state);
        }
    }

    pub(crate) fn end_job(&mut self, id: JobId, state: JobState, reason: ReasonCode) {
        self.job_mut(id).reason = reason;
        self.record_event(id, JobEventKind::Ended { state, reason });
        self.set_state(id, state);
        self.refresh_eligibility(id);
        self.publish_end(id);
        self.just_ended.push_back((id, state));
    }

    pub(crate) fn publish_end(&mut self, id: JobId) {
        if let Some(record) = self.head.record(self.now, id) {
            self.effect(Effect::Publish(id, Notice::Ended(Box::new(record))));
        }
    }
}

const fn start_failure(failure: &StartFailure) -> ReasonCode {
    match failure {
        StartFailure::CommandNotFound(_) => ReasonCode::CommandNotFound,
        StartFailure::NotExecutable(_) => ReasonCode::NotExecutable,
        StartFailure::WorkdirMissing(_) => ReasonCode::WorkdirMissing,
        StartFailure::DeviceMissing(_)
        | StartFailure::Other(_)
        | StartFailure::PortTaken(_)
        | StartFailure::DeviceFenced(_)
        | StartFailure::Account(_)
        | StartFailure::Unenforced(_)
        | StartFailure::NodeTrouble(_)
        | StartFailure::OrderLost => ReasonCode::CouldNotStart,
    }
}
