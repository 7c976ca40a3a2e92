//! The metrics by which policies are compared.

use cohabit_policy::mapping::{JobGraph, Mapper, MapperOptions, Server};
use cohabit_types::{JobState, Span, Time};
use serde::{Deserialize, Serialize};

use super::job_result::JobResult;
use super::lower_bound::{SingleMachineJob, mean_completion};
use super::spec::Evaluation;
use super::statistics::{mean, percentile};
use crate::machine_spec::MachineSpec;
use crate::share_speed::ShareSpeed;
use crate::slowdown_tracker::SharedRunTime;
use crate::workload::WorkloadJob;

/// A job that waits longer than this counts as delayed; others start with the next plan.
const DELAY_THRESHOLD: Span = Span::from_secs(1);

/// How a policy performed. JCT, the job completion time, is the time from submission to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationMetrics {
    /// The policy's name.
    pub policy: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of completed jobs.
    pub completed: usize,
    /// From the first submission to the last end, in seconds.
    pub makespan_s: f64,
    /// Mean JCT in seconds.
    pub mean_jct_s: f64,
    /// Median JCT in seconds.
    pub median_jct_s: f64,
    /// The JCT that 95 of 100 jobs do not exceed, in seconds.
    pub p95_jct_s: f64,
    /// The JCT that 99 of 100 jobs do not exceed, in seconds.
    pub p99_jct_s: f64,
    /// The longest JCT in seconds.
    pub max_jct_s: f64,
    /// Mean time without devices between submission and end, in seconds.
    pub mean_wait_s: f64,
    /// The median of that time, in seconds.
    pub median_wait_s: f64,
    /// The wait that 95 of 100 jobs do not exceed, in seconds.
    pub p95_wait_s: f64,
    /// The wait that 99 of 100 jobs do not exceed, in seconds.
    pub p99_wait_s: f64,
    /// The longest wait in seconds.
    pub max_wait_s: f64,
    /// Sum of all completion times since the first submission, in seconds: the objective of A-SRPT.
    pub total_completion_s: f64,
    /// Lower bound on the mean JCT, in seconds: that of the single machine A1 with true iterations and the
    /// fastest conceivable placements.
    pub lower_bound_mean_jct_s: f64,
    /// Mean JCT divided by its lower bound; 0 without a bound.
    pub jct_over_lower_bound: f64,
    /// Fraction of all device time that jobs held, from the first submission to the last end.
    pub gpu_busy: f64,
    /// The same from the first to the last submission.
    pub gpu_busy_while_arriving: f64,
    /// Fraction of all device time in which a device had at least one job, up to the last end. Jobs that
    /// share a device count once.
    #[serde(default)]
    pub gpu_occupied: f64,
    /// Mean over jobs of the time for which they held devices, divided by their run time alone at the best
    /// placement.
    pub mean_slowdown: f64,
    /// Mean over jobs with a graph of the iteration time at the last placement, divided by that at the best
    /// one.
    pub mean_gang_slowdown: f64,
    /// Number of jobs that waited more than a second for their first devices.
    pub delayed: usize,
    /// How often a job was preempted.
    pub preemptions: usize,
    /// Preemptions divided by jobs.
    pub stops_per_job: f64,
    /// How often a job found no memory left on its device.
    pub out_of_memory: usize,
    /// Of the run time of jobs that were allowed to share a device, the fraction with a slowdown above the
    /// bound.
    #[serde(default)]
    pub bound_violations: f64,
    /// How fast jobs were with their cores and host memory, relative to the proportional share of their
    /// nodes: the mean over all jobs, weighted by device time. 1 where that matters to no job.
    #[serde(default)]
    pub speed_by_share: f64,
    /// How often the cores and the host memory of a running job were changed.
    #[serde(default)]
    pub allotments: u64,
    /// Number of plans.
    pub plans: usize,
    /// Median time of a plan, in microseconds of a real clock.
    pub plan_us_p50: u64,
    /// 99th percentile of the time of a plan, in microseconds.
    pub plan_us_p99: u64,
    /// Events handled by the head and the workers.
    pub events: u64,
    /// Duration of the evaluation, in seconds of a real clock.
    pub wall_s: f64,
}

/// What is counted during an evaluation.
pub(super) struct EvaluationCounts {
    /// How long each plan took, in microseconds.
    pub(super) plans: Vec<u64>,
    /// Device time with at least one job.
    pub(super) occupied: Span,
    pub(super) measured: Measured,
    pub(super) wall_us: u64,
}

/// What the machines of an evaluation measured.
pub(super) struct Measured {
    pub(super) shared_run_time: SharedRunTime,
    pub(super) share_speed: ShareSpeed,
    pub(super) allotments: u64,
    pub(super) events: u64,
}

pub(super) fn compute(
    evaluation: &Evaluation,
    jobs: &[JobResult],
    counts: EvaluationCounts,
) -> EvaluationMetrics {
    let first = jobs.iter().map(|job| job.submitted).min().unwrap_or(Time::EPOCH);
    let last_arrival = jobs.iter().map(|job| job.submitted).max().unwrap_or(first);
    let last_end = jobs.iter().filter_map(|job| job.ended).max().unwrap_or(first);
    let capacity: u64 = evaluation.shapes.iter().map(|shape| u64::from(shape.devices)).sum();
    let busy = |until: Time| {
        held_until(jobs, until) / (capacity as f64 * until.since(first).as_secs_f64()).max(1e-9)
    };
    let all_time = capacity as f64 * last_end.since(first).as_secs_f64();
    let jct = sorted(jobs.iter().filter_map(JobResult::completion_time).map(Span::as_secs_f64));
    let waits = sorted(jobs.iter().filter_map(JobResult::waited).map(Span::as_secs_f64));
    let (mean_jct_s, lower_bound_mean_jct_s) = (mean(jct.iter().copied()), lower_bound(evaluation, capacity));
    let preemptions: usize = jobs.iter().map(JobResult::preemptions).sum();
    let plans = sorted_integers(counts.plans);
    let shared = counts.measured.shared_run_time;
    EvaluationMetrics {
        policy: evaluation.policy.clone(),
        jobs: jobs.len(),
        completed: count(jobs, |job| job.state == JobState::Completed),
        makespan_s: last_end.since(first).as_secs_f64(),
        mean_jct_s,
        median_jct_s: percentile(&jct, 0.5),
        p95_jct_s: percentile(&jct, 0.95),
        p99_jct_s: percentile(&jct, 0.99),
        max_jct_s: percentile(&jct, 1.0),
        mean_wait_s: mean(waits.iter().copied()),
        median_wait_s: percentile(&waits, 0.5),
        p95_wait_s: percentile(&waits, 0.95),
        p99_wait_s: percentile(&waits, 0.99),
        max_wait_s: percentile(&waits, 1.0),
        total_completion_s: jobs.iter().filter_map(|job| Some(job.ended?.since(first).as_secs_f64())).sum(),
        lower_bound_mean_jct_s,
        jct_over_lower_bound: if lower_bound_mean_jct_s > 0.0 {
            mean_jct_s / lower_bound_mean_jct_s
        } else {
            0.0
        },
        gpu_busy: busy(last_end),
        gpu_busy_while_arriving: busy(last_arrival),
        gpu_occupied: fraction(counts.occupied, all_time),
        mean_slowdown: mean(jobs.iter().filter_map(JobResult::slowdown)),
        mean_gang_slowdown: mean(jobs.iter().filter_map(|job| job.gang_slowdown)),
        delayed: count(jobs, |job| job.started.is_none_or(|at| at.since(job.submitted) > DELAY_THRESHOLD)),
        preemptions,
        stops_per_job: preemptions as f64 / jobs.len().max(1) as f64,
        out_of_memory: jobs.iter().map(|job| job.out_of_memory).sum(),
        bound_violations: fraction(shared.over_bound, shared.ran.as_secs_f64()),
        speed_by_share: counts.measured.share_speed.mean(),
        allotments: counts.measured.allotments,
        plans: plans.len(),
        plan_us_p50: percentile(&plans, 0.5),
        plan_us_p99: percentile(&plans, 0.99),
        events: counts.measured.events,
        wall_s: counts.wall_us as f64 / 1e6,
    }
}

/// The span as a fraction of this many seconds.
fn fraction(span: Span, seconds: f64) -> f64 {
    span.as_secs_f64() / seconds.max(1e-9)
}

fn count(jobs: &[JobResult], which: impl Fn(&&JobResult) -> bool) -> usize {
    jobs.iter().filter(which).count()
}

/// Device time that jobs held up to this moment, in seconds.
fn held_until(jobs: &[JobResult], until: Time) -> f64 {
    let held = |job: &JobResult| {
        let spans = job.attempts.iter().map(|(from, to)| (*to).min(until).since(*from).as_secs_f64());
        spans.sum::<f64>() * job.devices_milli as f64 / 1_000.0
    };
    jobs.iter().map(held).sum()
}

fn lower_bound(evaluation: &Evaluation, capacity: u64) -> f64 {
    let servers: Vec<Server> = evaluation.shapes.iter().map(MachineSpec::server).collect();
    let mut mapper = Mapper::new(MapperOptions::default());
    let mut work = |job: &WorkloadJob| {
        let devices = job.spec.demand.total_devices();
        let graph = job.spec.model.as_ref().and_then(|model| JobGraph::of(model, devices));
        let floor = graph.map_or(job.pace, |graph| mapper.bounds(&graph, &servers).floor.min(job.pace));
        let device_seconds = floor * job.iterations as f64 * job.spec.demand.total_milli() as f64 / 1_000.0;
        SingleMachineJob { at: job.at, length: Span::from_secs_f64(device_seconds / capacity.max(1) as f64) }
    };
    mean_completion(&evaluation.jobs.iter().map(&mut work).collect::<Vec<_>>())
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn sorted_integers(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}
