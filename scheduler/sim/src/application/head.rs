//! A small model of the head: jobs with attempts, retries and cancellations.

use std::collections::BTreeMap;

use cohabit_application_core::{ActorId, RunnerReport, RunnerState};
use cohabit_types::{AttemptId, JobId, Share};

use super::node_index::NodeIndex;

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunnerPurpose {
    Main,
    Actor(ActorId),
    /// Tasks of a class.
    Tasks(usize),
    /// The store of a further node.
    Store(NodeIndex),
}

/// A submission.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunnerRequest {
    pub(super) purpose: RunnerPurpose,
    pub(super) restarts: u32,
    pub(super) gpus: Share,
}

/// A job.
#[derive(Debug)]
pub(super) struct RunnerJob {
    pub(super) request: RunnerRequest,
    pub(super) cancelled: bool,
    attempts: Vec<RunnerAttempt>,
    pub(super) ended: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunnerAttempt {
    Live,
    /// It has ended with this code, and the head knows.
    Ended(i32),
}

/// All jobs.
#[derive(Debug)]
pub(super) struct HeadModel {
    last: u64,
    pub(super) jobs: BTreeMap<JobId, RunnerJob>,
}

/// What the head does after an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    Retry,
    Nothing,
}

impl HeadModel {
    pub(super) const fn new(root: JobId) -> HeadModel {
        HeadModel { last: root.number, jobs: BTreeMap::new() }
    }

    pub(super) fn submit(&mut self, request: RunnerRequest) -> JobId {
        self.last += 1;
        let job = JobId::new(self.last);
        self.jobs.insert(job, RunnerJob { request, cancelled: false, attempts: Vec::new(), ended: None });
        job
    }

    /// The GPUs of all jobs that have not ended, in thousandths.
    pub(super) fn gpus_in_use(&self) -> u32 {
        self.jobs.values().filter(|job| job.ended.is_none()).map(|job| job.request.gpus.0).sum()
    }

    /// The GPUs of all jobs with a process, in thousandths.
    pub(super) fn gpus_of_processes(&self) -> u32 {
        let placed = self.jobs.iter().filter(|(id, job)| !job.live(**id).is_empty());
        placed.map(|(_, job)| job.request.gpus.0).sum()
    }

    /// Starts the next attempt, unless the job is over.
    pub(super) fn start_attempt(&mut self, id: JobId) -> Option<AttemptId> {
        let job = self.jobs.get_mut(&id).filter(|job| job.ended.is_none() && !job.cancelled)?;
        job.attempts.push(RunnerAttempt::Live);
        Some(id.attempt(job.attempts.len() as u32))
    }

    /// Cancels a job: the processes that have to be ended.
    pub(super) fn cancel(&mut self, id: JobId) -> Vec<AttemptId> {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.ended.is_none()) else { return Vec::new() };
        job.cancelled = true;
        let live = job.live(id);
        if live.is_empty() {
            job.ended = Some(143);
        }
        live
    }

    /// A process has ended.
    pub(super) fn attempt_ended(&mut self, member: AttemptId, code: i32) -> NextStep {
        let Some(job) = self.jobs.get_mut(&member.job) else { return NextStep::Nothing };
        job.attempts[member.attempt as usize - 1] = RunnerAttempt::Ended(code);
        let is_last = member.attempt as usize == job.attempts.len();
        if !job.live(member.job).is_empty() {
            return NextStep::Nothing;
        }
        if job.cancelled || code == 0 || job.attempts.len() > job.request.restarts as usize {
            job.ended = Some(code);
            return NextStep::Nothing;
        }
        if is_last || job.live(member.job).is_empty() { NextStep::Retry } else { NextStep::Nothing }
    }

    /// Whether a job has had several attempts: then the end of one may be taken for that of another one.
    pub(super) fn has_several_attempts(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_some_and(|job| job.attempts.len() > 1)
    }

    /// Whether another attempt may be started.
    pub(super) fn may_retry(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_some_and(|job| {
            let started = job.attempts.len();
            started > 0
                && job.live(id).len() == 1
                && !job.cancelled
                && started <= job.request.restarts as usize
        })
    }

    pub(super) fn report(&self, id: JobId) -> Option<RunnerReport> {
        let job = self.jobs.get(&id)?;
        let ended = job.attempts.iter().take_while(|it| matches!(it, RunnerAttempt::Ended(_))).count();
        let state = match job.ended {
            Some(code) => RunnerState::Ended { code, text: format!("its process ended with {code}") },
            None if job.live(id).is_empty() => RunnerState::Waiting { why: "waits for a node".to_owned() },
            None => RunnerState::Live,
        };
        Some(RunnerReport { ended_attempts: ended as u32, state })
    }
}

impl RunnerJob {
    fn live(&self, id: JobId) -> Vec<AttemptId> {
        let numbered = (1..).zip(&self.attempts);
        numbered.filter(|(_, it)| **it == RunnerAttempt::Live).map(|(number, _)| id.attempt(number)).collect()
    }
}
