//! The life of a job: it is placed, stopped, ends, and is queued again.
//!
//! This module decides what follows the end of a rank or of an attempt. `job_state` carries changes of phase
//! out; `job_changes` holds what users ask for.

use cohabit_fair_share::UseTerms;
use cohabit_types::{
    FeedKind, JobEventKind, JobId, Notice, Order, Outcome, RankId, ReasonCode, Span, StartFailure,
    StopReason, Time,
};

use crate::alarm::Alarm;
use crate::interface::Effect;
use crate::job::{Attempt, EndedAttempt, EndedJob, JobExit, JobStatus, RankPhase, WaitingJob};
use crate::placement::PlannedStart;
use crate::succession::LeftPlace;
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

/// What follows the end of an attempt.
enum AttemptDecision {
    End(TerminalState, ReasonCode),
    /// The job is queued again after this pause.
    Requeue(Span),
    /// The job is queued again once somebody releases it.
    Hold,
}

impl Transition<'_> {
    /// Gives the job its devices and orders its ranks to start.
    pub(crate) fn start(&mut self, id: JobId, planned: PlannedStart) {
        let (attempt, orders) = self.head.new_attempt(id, &planned, self.now);
        self.begin(id, attempt, planned.why);
        for (key, order) in orders {
            self.effect(Effect::SendOrder(key, Order::Run(Box::new(order))));
        }
    }

    /// Gives the job its devices, on which this attempt begins.
    pub(crate) fn begin(&mut self, id: JobId, attempt: Attempt, why: String) {
        let now = self.now;
        let placed = self.head.placed_event(id, &attempt, now, why);
        let submission = self.head.submission_mut(id.number).expect("a job has a submission");
        let is_first = submission.first_started_at.is_none();
        submission.first_started_at = submission.first_started_at.or(Some(now));
        let user = submission.user.clone();
        let terms = UseTerms::of(&self.head.submissions[&id.number].spec);
        self.head.shares.take(&user, attempt.holds, terms, now);
        let demand = self.head.demand(id);
        for part in &attempt.placement.parts {
            self.node_mut(part.node).expect("a checked placement").take(id, &demand, part);
        }
        if demand.is_fungible() {
            self.head.volatile.fungible.insert(id);
        }
        self.count_start(id);
        self.head.leave_queue(id);
        self.record_event(id, placed);
        self.change_status(id, |job| job.status = JobStatus::Running(Box::new(attempt)));
        self.watch_closing(id);
        if is_first && id.index.is_some() {
            self.tell_array_start(id.number);
        }
    }

    /// Orders the end of the live attempt on all its nodes. One that is being stopped keeps its reason.
    pub(crate) fn stop_attempt(&mut self, id: JobId, why: StopReason) {
        let Some(attempt) = self.head.jobs[&id].live_attempt() else { return };
        let (number, nodes) = (attempt.number, attempt.live_nodes());
        self.withdraw_behind(id.attempt(number));
        self.record_event(id, JobEventKind::Stopping(id.attempt(number), why));
        self.change_status(id, |job| job.begin_stop(why));
        for node in nodes {
            self.order_stop(node, id, number, why);
        }
    }

    /// A rank of the live attempt ended, or was given up.
    pub(crate) fn rank_ended(&mut self, rank: RankId, outcome: Outcome) {
        let id = rank.attempt.job;
        self.record_event(id, JobEventKind::RankEnded { rank, outcome: outcome.clone() });
        if let Outcome::NotStarted(failure) = &outcome {
            self.note_start_failure(rank, failure);
        }
        let job = self.job_mut(id);
        let stopping = job.stop_requested().is_some();
        let attempt = job.live_attempt_mut().expect("the caller found the live attempt");
        let failed = !outcome.succeeded();
        if let Some(known) = attempt.ranks.get_mut(rank.rank as usize) {
            known.phase = RankPhase::Ended(outcome);
        }
        if failed && attempt.first_failure.is_none() {
            attempt.first_failure = Some(rank.rank);
        }
        if attempt.ranks.iter().all(|rank| !rank.is_live()) {
            self.attempt_ended(id);
        } else if failed && !stopping {
            self.stop_attempt(id, StopReason::GangBroken);
        } else {
            self.changed(id);
        }
    }

    /// Remembers what a failed start says about the rank's node.
    fn note_start_failure(&mut self, rank: RankId, failure: &StartFailure) {
        if let StartFailure::PortTaken(port) = failure {
            self.mark_port_taken(rank.attempt.job, *port);
        }
        if let StartFailure::NodeProblem(what) = failure {
            let attempt = self.head.jobs[&rank.attempt.job].live_attempt();
            let node = attempt.and_then(|attempt| Some(attempt.ranks.get(rank.rank as usize)?.node));
            node.into_iter().for_each(|node| self.pause_node(node, what));
        }
    }

    /// The last rank of the live attempt ended: its devices are free, and the job ends or waits again.
    fn attempt_ended(&mut self, id: JobId) {
        let job = &self.head.jobs[&id];
        let attempt = job.live_attempt().expect("the caller found the live attempt").clone();
        let ended = EndedAttempt { attempt, stop_requested: job.stop_requested(), at: self.now };
        // Progress is not journaled. If it outlived the attempt, a replay would lead to another state.
        self.head.volatile.progress.remove(&id.attempt(ended.attempt.number));
        self.count_attempt(id, &ended);
        self.release(id, &ended.attempt);
        self.end_children(id.attempt(ended.attempt.number), ended.stop_requested);
        match self.decide_after_attempt(id, &ended) {
            AttemptDecision::End(state, reason) => self.end_job(id, state, reason),
            AttemptDecision::Requeue(pause) => self.requeue_after_attempt(id, &ended, pause),
            AttemptDecision::Hold => {
                self.requeue_after_attempt(id, &ended, Span::ZERO);
                self.set_held(id, true);
            }
        }
        let follower = self.begin_follower(id.attempt(ended.attempt.number));
        self.left_places.push(LeftPlace::of(id, &ended, follower));
    }

    fn release(&mut self, id: JobId, attempt: &Attempt) {
        self.head.volatile.fungible.remove(&id);
        let demand = self.head.demand(id);
        for part in &attempt.placement.parts {
            if let Some(node) = self.node_mut(part.node) {
                node.release(id, &demand, part);
            }
        }
        if let Some(submission) = self.head.submissions.get(&id.number) {
            self.head.shares.release(
                &submission.user,
                attempt.holds,
                UseTerms::of(&submission.spec),
                self.now,
            );
        }
    }

    fn decide_after_attempt(&mut self, id: JobId, ended: &EndedAttempt) -> AttemptDecision {
        let attempt = &ended.attempt;
        match ended.as_ref().effective_stop() {
            Some(StopReason::Cancelled | StopReason::Killed) => {
                AttemptDecision::End(TerminalState::Cancelled, ReasonCode::CancelledByUser)
            }
            Some(StopReason::ApplicationEnded) => {
                AttemptDecision::End(TerminalState::Cancelled, ReasonCode::ApplicationEnded)
            }
            Some(StopReason::Idle) => AttemptDecision::End(TerminalState::Cancelled, ReasonCode::Idle),
            Some(StopReason::TimeLimit) => match self.head.submissions[&id.number].spec.requeue_on_timeout {
                true => AttemptDecision::Requeue(Span::ZERO),
                false => AttemptDecision::End(TerminalState::Timeout, ReasonCode::TimeLimit),
            },
            Some(StopReason::Stalled) => {
                self.failed_without_retry(id, TerminalState::Failed, ReasonCode::Stalled)
            }
            Some(StopReason::Requeued | StopReason::Preempted | StopReason::Reclaimed) => {
                AttemptDecision::Requeue(Span::ZERO)
            }
            Some(StopReason::Superseded | StopReason::Orphaned) => self.node_failed(id, ReasonCode::NodeLost),
            Some(StopReason::MpsFaultVictim) => self.node_failed(id, ReasonCode::MpsFaultVictim),
            Some(StopReason::DeviceLost) => self.node_failed(id, ReasonCode::DeviceLost),
            Some(StopReason::Unenforced) => self.node_failed(id, ReasonCode::SharingUnenforced),
            Some(StopReason::MpsFault) => {
                self.failed_by(id, attempt, TerminalState::Failed, ReasonCode::MpsFault)
            }
            Some(StopReason::GpuMemory) => {
                self.failed_by(id, attempt, TerminalState::OutOfMemory, ReasonCode::GpuOom)
            }
            Some(StopReason::GangBroken) | None => self.decide_by_outcome(id, attempt),
        }
    }

    /// The first rank that failed decides for all.
    fn decide_by_outcome(&mut self, id: JobId, attempt: &Attempt) -> AttemptDecision {
        let failure = |reason| (TerminalState::Failed, reason);
        let (state, reason) = match attempt.first_failed_outcome() {
            None => {
                self.job_mut(id).last_exit = Some(JobExit::Code(0));
                return AttemptDecision::End(TerminalState::Completed, ReasonCode::Completed);
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
            Some(Outcome::NotStarted(StartFailure::NodeProblem(_))) => {
                return AttemptDecision::Requeue(Span::ZERO);
            }
            // Happens at most once after each start of the head.
            Some(Outcome::NotStarted(StartFailure::OrderLost)) if self.head.is_of_earlier_life(attempt) => {
                return AttemptDecision::Requeue(Span::ZERO);
            }
            Some(Outcome::OutOfGpuMemory { .. }) => (TerminalState::OutOfMemory, ReasonCode::GpuOom),
            Some(Outcome::OutOfMemory { limit: Some(_), .. }) => {
                (TerminalState::OutOfMemory, ReasonCode::MemoryLimit)
            }
            Some(Outcome::OutOfMemory { limit: None, .. }) => (TerminalState::OutOfMemory, ReasonCode::Oom),
            Some(Outcome::Exited(_)) => failure(ReasonCode::ExitCode),
            Some(Outcome::Signalled(_)) => failure(ReasonCode::Signalled),
            Some(Outcome::NotStarted(cause)) => failure(start_failure(cause)),
        };
        self.failed_by(id, attempt, state, reason)
    }

    /// A failure by the job's own fault, which uses a retry; unless only the memory predicted for it was
    /// wrong.
    fn failed_by(
        &mut self,
        id: JobId,
        attempt: &Attempt,
        state: TerminalState,
        reason: ReasonCode,
    ) -> AttemptDecision {
        if self.attribute_to_prediction(id, attempt, reason) {
            return AttemptDecision::Requeue(Span::ZERO);
        }
        let retry = self.head.submissions[&id.number].spec.retry;
        let job = self.job_mut(id);
        job.last_exit = match attempt.first_failed_outcome() {
            Some(
                Outcome::Exited(code)
                | Outcome::OutOfGpuMemory { code, .. }
                | Outcome::OutOfMemory { code, .. },
            ) => Some(JobExit::Code(*code)),
            Some(Outcome::Signalled(signal)) => Some(JobExit::Signal(*signal)),
            Some(Outcome::NotStarted(_) | Outcome::Lost(_)) | None => None,
        };
        if job.own_failures >= retry.limit {
            return AttemptDecision::End(state, reason);
        }
        job.own_failures += 1;
        match job.is_isolated() {
            true => AttemptDecision::Hold,
            false => AttemptDecision::Requeue(retry.pause(job.own_failures)),
        }
    }

    /// A failure that is not the job's fault.
    fn node_failed(&mut self, id: JobId, reason: ReasonCode) -> AttemptDecision {
        self.failed_without_retry(id, TerminalState::NodeFail, reason)
    }

    /// A failure that uses no retry; but the configuration limits how many there may be.
    fn failed_without_retry(
        &mut self,
        id: JobId,
        state: TerminalState,
        reason: ReasonCode,
    ) -> AttemptDecision {
        let limit = self.head.config.node_failures;
        let job = self.job_mut(id);
        job.node_failures += 1;
        match job.node_failures > limit {
            true => AttemptDecision::End(state, reason),
            false => AttemptDecision::Requeue(Span::ZERO),
        }
    }

    fn requeue_after_attempt(&mut self, id: JobId, ended: &EndedAttempt, pause: Span) {
        let limit = self.head.submissions[&id.number].spec.retry.limit;
        let failures = self.head.jobs[&id].own_failures;
        let (attempt, why) = (id.attempt(ended.attempt.number), ended.as_ref().effective_stop());
        let requeued = JobEventKind::Requeued { attempt, pause, failures, limit, why };
        let text = requeued.to_string();
        self.record_event(id, requeued);
        self.wait_until(id, self.now + pause);
        let is_reclaimed = matches!(why, Some(StopReason::Preempted | StopReason::Reclaimed));
        self.tell_of_job(id, if is_reclaimed { FeedKind::Reclaim } else { FeedKind::Requeue }, text);
    }

    fn wait_until(&mut self, id: JobId, at: Time) {
        let now = self.now;
        let not_before = Some(at).filter(|at| *at > now);
        if at > now {
            self.set_alarm(at, Alarm::JobEligible(id));
        }
        let waiting = JobStatus::Waiting(WaitingJob { not_before, ..WaitingJob::since(now) });
        self.change_status(id, |job| job.leave_for(waiting, now));
        self.drop_prediction_if_too_large(id);
        self.refresh_eligibility(id);
    }

    /// Queues a job that ended as if it were new. The numbers of its attempts go on. What it waited for when
    /// it ran does not count again.
    pub(crate) fn requeue_ended_job(&mut self, id: JobId) {
        let attempt = id.attempt(self.head.jobs[&id].attempt_count());
        let limit = self.head.submissions[&id.number].spec.retry.limit;
        self.head.keep_traits(id.number);
        let job = self.job_mut(id);
        (job.own_failures, job.node_failures) = (0, 0);
        job.last_exit = None;
        let pause = Span::ZERO;
        self.record_event(id, JobEventKind::Requeued { attempt, pause, failures: 0, limit, why: None });
        self.wait_until(id, self.now);
        if attempt.attempt == 0 {
            self.await_unfinished_dependencies(id);
        }
        self.choose_worst_member(id.number);
    }

    /// Chooses the member whose end represents the array, after one that had ended was requeued.
    fn choose_worst_member(&mut self, number: u64) {
        let members = self.head.jobs.range(JobId::new(number)..=JobId::member(number, u32::MAX));
        let ended: Vec<_> = members.filter_map(|(id, job)| Some((*id, job.ended()?.state))).collect();
        let submission = self.head.submission_mut(number).expect("a job has a submission");
        submission.worst_member = None;
        for (id, state) in ended {
            submission.note_member_end(id, state);
        }
    }

    /// Ends the job and publishes its record; its dependents follow at the end of the transition.
    pub(crate) fn end_job(&mut self, id: JobId, state: TerminalState, reason: ReasonCode) {
        let now = self.now;
        self.record_event(id, JobEventKind::Ended { state: state.job_state(), reason });
        let end = JobStatus::Ended(EndedJob { state, reason, at: now });
        self.change_status(id, |job| {
            job.leave_for(end, now);
            job.shrink();
        });
        self.count_end(id, state);
        self.refresh_eligibility(id);
        self.publish_end(id);
        self.just_ended.push_back((id, state));
    }

    /// Publishes the final record of a job, or of an array as a whole.
    pub(crate) fn publish_end(&mut self, id: JobId) {
        if let Some(record) = self.head.at(self.now).record(id) {
            self.tell_end(&record);
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
        | StartFailure::NodeProblem(_)
        | StartFailure::OrderLost => ReasonCode::CouldNotStart,
    }
}
