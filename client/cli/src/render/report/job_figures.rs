//! What a job did with what it held, over all its attempts: the figures that a report and its advice rest on.

use cohabit_client::types::{
    AttemptRecord, Bytes, JobRecord, JobState, Outcome, Share, Span, StopReason, Time, UsageRecord,
};

/// The figures of a job that advice rests on. Seconds on GPUs are each times the part that was held.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobReport {
    pub(super) job: String,
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) attempts: usize,
    /// How long its attempts ran, one after the other.
    pub(super) ran: Span,
    /// How long its latest attempt ran or has run.
    pub(super) latest: Span,
    pub(super) completed: bool,
    pub(super) time_limit: Option<Span>,
    pub(super) held: f64,
    pub(super) measured: f64,
    pub(super) busy: f64,
    pub(super) idle: f64,
    /// Attempts that were taken from it for others, or lost with their node.
    pub(super) lost_attempts: usize,
    pub(super) lost: f64,
    pub(super) has_checkpoint: bool,
    /// Of its fullest GPU.
    pub(super) memory: Option<MemoryUse>,
    /// Whole GPUs that it asked for on all nodes; none for a part of one.
    pub(super) whole_gpus: Option<u32>,
    /// Cores on each node, where it claims any.
    pub(super) cores: u32,
    /// GPUs on each node.
    pub(super) node_gpus: u32,
    /// GPUs of its latest attempt, and how many of them did nothing while others worked.
    pub(super) gpus: usize,
    pub(super) unused_gpus: usize,
    /// Whether others were on its GPUs: then what is measured is theirs as well.
    pub(super) was_shared: bool,
}

/// The most memory that a job held of a GPU, and what it might have held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    pub(super) used: Bytes,
    pub(super) claimed: Bytes,
    pub(super) of_device: Bytes,
}

/// A GPU that was busy for a smaller part of the time than this did nothing.
const UNUSED: f64 = 0.02;

impl JobReport {
    /// The figures of this job; `usage` may have records of others.
    pub(crate) fn new(record: &JobRecord, usage: &[UsageRecord], now: Time) -> JobReport {
        let usage: Vec<&UsageRecord> = usage.iter().filter(|it| it.rank.attempt.job == record.id).collect();
        let seconds = |part: fn(&UsageRecord) -> Span| {
            total(usage.iter().map(|it| it.share.as_f64() * part(it).as_secs_f64()))
        };
        let ran = |attempt: &AttemptRecord| attempt.ended_at.unwrap_or(now).since(attempt.started_at);
        let held = |attempt: &AttemptRecord| {
            let devices = attempt.ranks.iter().map(|rank| rank.share.as_f64() * rank.devices.len() as f64);
            devices.sum::<f64>() * ran(attempt).as_secs_f64()
        };
        let lost = || record.attempts.iter().filter(|attempt| is_lost(attempt));
        let latest: Vec<&UsageRecord> =
            usage.iter().copied().filter(|it| it.rank.attempt.attempt == record.attempt).collect();
        let is_unused = |it: &&&UsageRecord| it.usage.utilization().is_some_and(|busy| busy < UNUSED);
        let unused_gpus = latest.iter().filter(is_unused).count();
        let demand = &record.demand;
        let whole = demand.share() == Share::WHOLE;
        JobReport {
            job: record.id.to_string(),
            name: record.name.clone(),
            state: record.state.word(),
            attempts: record.attempts.len(),
            ran: record.attempts.iter().map(ran).fold(Span::ZERO, |sum, span| sum + span),
            latest: record.latest().map_or(Span::ZERO, ran),
            completed: record.state == JobState::Completed,
            time_limit: record.time_limit,
            held: total(record.attempts.iter().map(held)),
            measured: seconds(|it| it.usage.measured),
            busy: seconds(|it| it.usage.busy),
            idle: seconds(|it| it.usage.idle),
            lost_attempts: lost().count(),
            lost: total(lost().map(held)),
            has_checkpoint: record.labels.checkpoint.is_some(),
            memory: memory_use(record, &usage),
            whole_gpus: whole.then(|| demand.nodes.saturating_mul(demand.devices())),
            cores: demand.cpus,
            node_gpus: demand.devices(),
            gpus: latest.len(),
            unused_gpus: if unused_gpus < latest.len() { unused_gpus } else { 0 },
            was_shared: usage.iter().any(|it| it.usage.shared),
        }
    }

    /// Busy per measured time.
    pub(super) fn efficiency(&self) -> Option<f64> {
        (self.measured > 0.0).then(|| self.busy / self.measured)
    }
}

/// The sum from 0.0 on: `sum` makes -0.0 of nothing, which people would read.
fn total(amounts: impl Iterator<Item = f64>) -> f64 {
    amounts.fold(0.0, |sum, amount| sum + amount)
}

fn memory_use(record: &JobRecord, usage: &[&UsageRecord]) -> Option<MemoryUse> {
    let fullest = usage.iter().filter_map(|it| Some((it.usage.memory?, it.usage.capacity))).max()?;
    let (used, of_device) = fullest;
    let claimed = record.demand.gpu_memory.unwrap_or(of_device);
    Some(MemoryUse { used, claimed: claimed.max(used), of_device })
}

/// Whether an attempt ended through no doing of its job.
fn is_lost(attempt: &AttemptRecord) -> bool {
    match attempt.stopped {
        Some(StopReason::GangBroken) | None => {
            attempt.ranks.iter().any(|rank| matches!(rank.outcome, Some(Outcome::Lost(_))))
        }
        Some(why) => why.is_no_fault_of_the_job(),
    }
}
