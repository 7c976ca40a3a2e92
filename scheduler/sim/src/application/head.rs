//! A small model of the head: jobs with attempts, retries and cancellations.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::{ActorId, RunnerReport, RunnerShortage, RunnerState};
use cohabit_types::{JobId, RankId, Share};

use super::node_index::NodeIndex;

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunnerPurpose {
    Main,
    /// Actors, of which this one is the first.
    Gang(ActorId),
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
    /// The processes of an attempt.
    pub(super) ranks: u32,
    /// Of all ranks together.
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

#[derive(Debug)]
struct RunnerAttempt {
    /// Ranks of whose end the head does not know.
    live: BTreeSet<u32>,
    /// The code of the first rank that did not end with 0.
    code: i32,
}

/// All jobs.
#[derive(Debug)]
pub(super) struct HeadModel {
    last: u64,
    pub(super) jobs: BTreeMap<JobId, RunnerJob>,
}

/// What the head does after a process has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextStep {
    Retry,
    /// End the other ranks of a failed attempt.
    EndOthers(Vec<RankId>),
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

    /// Starts the next attempt, unless the job is over: its processes.
    pub(super) fn start_attempt(&mut self, id: JobId) -> Vec<RankId> {
        let job = self.jobs.get_mut(&id).filter(|job| job.ended.is_none() && !job.cancelled);
        let Some(job) = job else { return Vec::new() };
        job.attempts.push(RunnerAttempt { live: (0..job.request.ranks).collect(), code: 0 });
        let attempt = id.attempt(job.attempts.len() as u32);
        (0..job.request.ranks).map(|rank| attempt.rank(rank)).collect()
    }

    /// Cancels a job: the processes that have to be ended.
    pub(super) fn cancel(&mut self, id: JobId) -> Vec<RankId> {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.ended.is_none()) else { return Vec::new() };
        job.cancelled = true;
        let live = job.live(id);
        if live.is_empty() {
            job.ended = Some(143);
        }
        live
    }

    /// A process has ended.
    pub(super) fn rank_ended(&mut self, member: RankId, code: i32) -> NextStep {
        let Some(job) = self.jobs.get_mut(&member.job()) else { return NextStep::Nothing };
        let attempt = &mut job.attempts[member.attempt.attempt as usize - 1];
        attempt.live.remove(&member.rank);
        if code != 0 && attempt.code == 0 {
            attempt.code = code;
            let others = attempt.live.iter().map(|rank| member.attempt.rank(*rank));
            let others: Vec<RankId> = others.collect();
            if !others.is_empty() {
                return NextStep::EndOthers(others);
            }
        }
        let code = attempt.code;
        let is_last = member.attempt.attempt as usize == job.attempts.len();
        if !job.live(member.job()).is_empty() {
            return NextStep::Nothing;
        }
        if job.cancelled || code == 0 || job.attempts.len() > job.request.restarts as usize {
            job.ended = Some(code);
            return NextStep::Nothing;
        }
        if is_last || job.live(member.job()).is_empty() { NextStep::Retry } else { NextStep::Nothing }
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
                && job.attempts.iter().filter(|attempt| !attempt.live.is_empty()).count() == 1
                && !job.cancelled
                && started <= job.request.restarts as usize
        })
    }

    pub(super) fn report(&self, id: JobId) -> Option<RunnerReport> {
        let job = self.jobs.get(&id)?;
        let ended = job.attempts.iter().take_while(|attempt| attempt.live.is_empty()).count();
        let state = match job.ended {
            Some(code) => RunnerState::Ended { code, text: format!("its process ended with {code}") },
            None if job.live(id).is_empty() => {
                RunnerState::Waiting { why: "waits for a node".to_owned(), shortage: shortage_of(id) }
            }
            None => RunnerState::Live,
        };
        Some(RunnerReport { ended_attempts: ended as u32, state })
    }
}

/// What a job waits for. Whether others hold that makes no difference here.
const fn shortage_of(id: JobId) -> Option<RunnerShortage> {
    match id.number % 4 {
        0 => None,
        1 => Some(RunnerShortage::Gpus),
        2 => Some(RunnerShortage::Host),
        _ => Some(RunnerShortage::Jobs),
    }
}

impl RunnerJob {
    /// The processes that live, as far as the head knows.
    fn live(&self, id: JobId) -> Vec<RankId> {
        let numbered = (1..).map(|number| id.attempt(number)).zip(&self.attempts);
        let ranks = numbered.flat_map(|(attempt, it)| it.live.iter().map(move |rank| attempt.rank(*rank)));
        ranks.collect()
    }
}
