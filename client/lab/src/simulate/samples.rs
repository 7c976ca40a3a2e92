//! Invented results for tests of tables and documents.

use cohabit_sim::{
    Accuracy, DeviceSpan, EvaluationMetrics, EvaluationResult, JobBehavior, JobResult, Series,
};
use cohabit_types::{JobState, Span, Time};

use super::left_out::LeftOutJobs;
use super::result::{ConfigurationSource, SelectedJobs, SimulationResult, SimulationResults};

fn at(secs: u64) -> Time {
    Time::EPOCH + Span::from_secs(secs)
}

/// A job on one device that ran between these seconds.
fn job(from: u64, to: u64) -> JobResult {
    JobResult {
        line: None,
        user: "ada".into(),
        submitted: at(0),
        started: Some(at(from)),
        ended: Some(at(to)),
        state: JobState::Completed,
        devices_milli: 1_000,
        nodes: vec!["node-0".into()],
        attempts: vec![(at(from), at(to))],
        out_of_memory: 0,
        ideal: Span::from_secs(to - from),
        gang_slowdown: None,
    }
}

fn metrics(policy: &str, mean_jct_s: f64) -> EvaluationMetrics {
    EvaluationMetrics {
        policy: policy.into(),
        jobs: 2,
        completed: 2,
        makespan_s: 300.0,
        mean_jct_s,
        median_jct_s: 100.0,
        p95_jct_s: 300.0,
        p99_jct_s: 300.0,
        max_jct_s: 300.0,
        mean_wait_s: 50.0,
        median_wait_s: 0.0,
        p95_wait_s: 100.0,
        p99_wait_s: 100.0,
        max_wait_s: 100.0,
        total_completion_s: 400.0,
        lower_bound_mean_jct_s: 90.0,
        jct_over_lower_bound: mean_jct_s / 90.0,
        gpu_busy: 0.5,
        gpu_busy_while_arriving: 0.75,
        gpu_occupied: 0.625,
        mean_slowdown: 1.25,
        mean_gang_slowdown: 1.5,
        delayed: 1,
        preemptions: 1,
        stops_per_job: 0.5,
        out_of_memory: 3,
        bound_violations: 0.125,
        speed_by_share: 1.125,
        allotments: 5,
        plans: 4,
        plan_us_p50: 7,
        plan_us_p99: 70,
        events: 40,
        wall_s: 0.5,
    }
}

/// A run of two jobs on the devices `node-0-0` and `node-1-0`.
fn run(variant: usize, policy: &str, seed: u64, mean_jct_s: f64) -> SimulationResult {
    let span =
        |device: &str, job, from, to| DeviceSpan { device: device.into(), job, from: at(from), to: at(to) };
    SimulationResult {
        variant,
        window: 0,
        seed,
        load: Some(0.9),
        left_out: LeftOutJobs::default(),
        incentive: None,
        models: None,
        evaluated: EvaluationResult {
            metrics: metrics(policy, mean_jct_s),
            jobs: vec![job(0, 100), job(100, 300)],
            series: Series {
                queued: vec![(at(0), 1), (at(100), 0), (at(300), 0)],
                busy: vec![(at(0), 1), (at(100), 1), (at(300), 0)],
            },
            spans: vec![span("node-0-0", 0, 0, 100), span("node-1-0", 1, 100, 300)],
            estimates: Accuracy::default(),
        },
    }
}

/// Two policies with two seeds each. The second policy is twice as fast with the first seed and four times as
/// fast with the other.
pub(super) fn outcomes() -> SimulationResults {
    let second = "a-srpt:<b>&theta=1";
    SimulationResults {
        trace: "jobs <1>.csv".into(),
        cluster: "2x1:V100@25g".into(),
        devices: 2,
        estimator: "oracle".into(),
        interference: "law".into(),
        predictor: "law".into(),
        learn_online: false,
        sensitivity: None,
        max_slowdown: 1.3,
        behavior: JobBehavior::default(),
        selection: SelectedJobs {
            max_duration_s: None,
            max_gpus: None,
            skip: 0,
            limit: None,
            windows: 1,
            stride: 0,
        },
        baseline: 0,
        sharing: ConfigurationSource::FromTrace,
        command: "cohabit simulate --trace 'jobs <1>.csv'".into(),
        left_out: LeftOutJobs { too_wide: 3, too_large: 1, ..LeftOutJobs::default() },
        runs: vec![
            run(0, "fifo", 1, 200.0),
            run(1, second, 1, 100.0),
            run(0, "fifo", 2, 400.0),
            run(1, second, 2, 100.0),
        ],
    }
}

/// Two windows with two seeds each. The second policy takes 1/2 and 1/8 of the first one's time in one
/// window, and 1/4 in the other.
pub(super) fn outcomes_of_windows() -> SimulationResults {
    let pair = |window, seed, second: f64| {
        [run(0, "fifo", seed, 400.0), run(1, "spd", seed, second)]
            .map(|run| SimulationResult { window, ..run })
    };
    let runs =
        [pair(0, 1, 200.0), pair(0, 2, 50.0), pair(1, 2, 100.0), pair(1, 3, 100.0)].into_iter().flatten();
    SimulationResults { runs: runs.collect(), ..outcomes() }
}
