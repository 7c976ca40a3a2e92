//! The result of one job of an evaluation.

use std::collections::BTreeSet;

use cohabit_types::{AttemptRecord, JobRecord, JobState, Outcome, Span, Time};

use crate::workload::WorkloadJob;

/// The result of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobResult {
    /// Its line in the trace file, from 1; none for a synthetic job.
    pub line: Option<u64>,
    /// The user who submitted it.
    pub user: String,
    /// When it was submitted.
    pub submitted: Time,
    /// When it first got devices.
    pub started: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// Its final state.
    pub state: JobState,
    /// Devices that it held, in thousandths.
    pub devices_milli: u64,
    /// The names of the nodes of its last attempt, in order, each once.
    pub nodes: Vec<String>,
    /// Start and end of each attempt.
    pub attempts: Vec<(Time, Time)>,
    /// How many attempts found no memory left on their device.
    pub out_of_memory: usize,
    /// Its run time alone at the best placement.
    pub ideal: Span,
    /// Iteration time at the last placement over that at the best one; only for jobs with a graph.
    pub gang_slowdown: Option<f64>,
}

impl JobResult {
    /// A job without any result yet.
    pub(super) fn submitted(job: &WorkloadJob) -> JobResult {
        JobResult {
            line: job.line,
            user: job.user.clone(),
            submitted: job.at,
            started: None,
            ended: None,
            state: JobState::Pending,
            devices_milli: job.spec.demand.total_milli(),
            nodes: Vec::new(),
            attempts: Vec::new(),
            out_of_memory: 0,
            ideal: job.ideal(),
            gang_slowdown: None,
        }
    }

    /// Takes the result from the record of the ended job.
    pub(super) fn take(&mut self, record: &JobRecord) {
        let last = record.latest();
        let ended = |ended_at: Option<Time>| ended_at.unwrap_or(Time::NEVER);
        let attempts = record.attempts.iter().map(|attempt| (attempt.started_at, ended(attempt.ended_at)));
        self.attempts = attempts.collect();
        self.out_of_memory = record.attempts.iter().filter(|attempt| ran_out_of_memory(attempt)).count();
        self.started = self.attempts.first().map(|(started, _)| *started);
        self.ended = record.ended_at;
        self.state = record.state;
        let nodes: BTreeSet<&str> =
            last.iter().flat_map(|it| &it.ranks).map(|rank| rank.node.as_str()).collect();
        self.nodes = nodes.into_iter().map(str::to_owned).collect();
        // A device that it cannot share is taken whole, whatever share it asks for.
        let placed = last.map_or(0, |it| {
            it.ranks.iter().map(|rank| rank.devices.len() as u64 * u64::from(rank.share.0)).sum()
        });
        self.devices_milli = self.devices_milli.max(placed);
    }

    /// How often it was preempted.
    #[must_use]
    pub fn preemptions(&self) -> usize {
        // The last attempt was not followed by another, however it ended.
        let last = usize::from(self.state != JobState::OutOfMemory);
        self.attempts.len().saturating_sub(last + self.out_of_memory)
    }

    /// Time from submission to end.
    #[must_use]
    pub fn completion_time(&self) -> Option<Span> {
        Some(self.ended?.since(self.submitted))
    }

    /// Time for which it held devices, over all attempts.
    #[must_use]
    pub fn ran(&self) -> Span {
        self.attempts.iter().fold(Span::ZERO, |sum, (started, ended)| sum + ended.since(*started))
    }

    /// Time for which it held devices over its run time alone at the best placement; none for a job that has
    /// not ended or takes no time.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        let ideal = self.ideal.as_secs_f64();
        (ideal > 0.0 && self.ended.is_some()).then(|| self.ran().as_secs_f64() / ideal)
    }

    /// GPU time that it held, in seconds of a whole GPU.
    #[must_use]
    pub fn gpu_seconds(&self) -> f64 {
        self.ran().as_secs_f64() * self.devices_milli as f64 / 1_000.0
    }

    /// Time without devices, before its first attempt and between attempts.
    #[must_use]
    pub fn waited(&self) -> Option<Span> {
        Some(self.completion_time()? - self.ran())
    }
}

fn ran_out_of_memory(attempt: &AttemptRecord) -> bool {
    attempt.ranks.iter().any(|rank| matches!(rank.outcome, Some(Outcome::OutOfGpuMemory { .. })))
}
