//! Evaluations: the golden schedule of A-SRPT on the whole cluster, speeds of gangs, consistent accounts.

use cohabit_policy::POLICY_NAMES;
use cohabit_policy::interference::InterferenceContext;
use cohabit_types::{
    Bandwidth, Bytes, Demand, GpuRequest, JobSpec, JobState, LaunchMode, LinkBandwidths, ModelDescription,
    PipelineStage, Share, Spread,
};

use super::kit::*;
use crate::evaluation::{
    EstimatorKind, Evaluation, EvaluationError, EvaluationResult, JobBehavior, Observer, StopCost, evaluate,
};
use crate::machine::Hardware;
use crate::machine_spec::MachineSpec;
use crate::program::SimProgram;
use crate::trace::{ReadOptions, read, synthetic};
use crate::workload::{Pace, WorkloadJob, workload};

/// Counts the ended jobs; its clock stands still.
#[derive(Default)]
struct Counter {
    ended: usize,
}

impl Observer for Counter {
    fn progressed(&mut self, ended: usize, _: usize) {
        assert_eq!(ended, self.ended + 1, "every end is reported once");
        self.ended = ended;
    }

    fn clock_us(&mut self) -> u64 {
        0
    }
}

/// A job that takes this many seconds on this many devices anywhere.
fn job(at_secs: u64, devices: u32, seconds: u64) -> WorkloadJob {
    let demand = Demand { gpus: GpuRequest::Whole(devices), spread: Spread::Free, ..Demand::default() };
    let alone_milli = demand.total_milli();
    let spec = JobSpec { demand, launch: LaunchMode::PerGpu, ..SimProgram::working(secs(seconds)).job() };
    WorkloadJob {
        line: None,
        at: at(at_secs),
        user: "ada".into(),
        spec,
        iterations: seconds,
        pace: 1.0,
        alone_milli,
    }
}

fn evaluation(policy: &str, machines: usize, devices: u32, jobs: Vec<WorkloadJob>) -> Evaluation {
    let links = LinkBandwidths {
        network: Some(Bandwidth(25_000_000_000)),
        interconnect: Some(Bandwidth(400_000_000_000)),
    };
    let shapes =
        (0..machines).map(|it| MachineSpec::new(&format!("node-{it}"), devices).with_links(links)).collect();
    Evaluation {
        shapes,
        hardware: Hardware::default(),
        jobs,
        policy: policy.into(),
        knowledge: InterferenceContext::default(),
        sensitivity: std::sync::Arc::default(),
        fair_share: false,
        estimator: EstimatorKind::Oracle,
        behavior: JobBehavior::default(),
        seed: 1,
    }
}

#[track_caller]
fn evaluated(evaluation: Evaluation) -> EvaluationResult {
    evaluate(evaluation, &mut Counter::default()).unwrap()
}

/// Without a stated memory a job shares no GPU that has a memory.
#[test]
fn a_part_of_a_gpu_that_is_taken_whole_counts_whole() {
    let mut part = job(0, 1, 100);
    part.spec.demand = Demand { gpus: GpuRequest::Part(Share(320)), ..Demand::default() };
    part.spec.launch = LaunchMode::default();
    let evaluation = Evaluation {
        shapes: vec![MachineSpec::new("node", 1).with_gpu("V100", Bytes(16 << 30))],
        ..evaluation("fifo-greedy", 1, 1, vec![part])
    };
    assert_eq!(evaluated(evaluation).jobs[0].devices_milli, 1_000);
}

fn synthetic_on(policy: &str, estimator: EstimatorKind, count: usize) -> Evaluation {
    let mut evaluation = evaluation(policy, 4, 8, Vec::new());
    let mut pace = Pace::on(&evaluation.shapes);
    let made = workload(&synthetic(count, 3), &evaluation.shapes, None, 3, |model, devices| {
        pace.fastest(model, devices)
    });
    evaluation.jobs = made.with_load(1.1, 32).jobs;
    evaluation.estimator = estimator;
    evaluation
}

#[track_caller]
fn near(is: f64, should: f64, tolerance: f64) {
    assert!((is - should).abs() <= tolerance, "{is} instead of {should}");
}

#[test]
fn the_simulated_cluster_reproduces_the_golden_schedule_of_a_srpt() {
    for policy in ["a-srpt-turn", "a-srpt-strict"] {
        let done = evaluated(evaluation(policy, 1, 4, vec![job(0, 2, 8), job(1, 4, 2), job(2, 1, 2)]));
        let times = |of: &dyn Fn(usize) -> Option<cohabit_types::Time>| {
            [0, 1, 2].map(|it| of(it).unwrap().as_secs_f64())
        };
        for (is, should) in times(&|it| done.jobs[it].started).into_iter().zip([6.5, 4.5, 2.5]) {
            near(is, should, 0.02);
        }
        for (is, should) in times(&|it| done.jobs[it].ended).into_iter().zip([14.5, 6.5, 4.5]) {
            near(is, should, 0.02);
        }
        near(done.metrics.total_completion_s, 25.5, 0.1);
        near(done.metrics.lower_bound_mean_jct_s, (12.5 - 3.0) / 3.0, 1e-6);
    }
}

#[test]
fn waits_and_completions_have_percentiles_and_a_longest_one() {
    // Job n waits for n jobs of 100 s.
    let jobs = (0..20).map(|_| job(0, 1, 100)).collect();
    let metrics = evaluated(evaluation("fifo", 1, 1, jobs)).metrics;
    let waits = [
        metrics.mean_wait_s,
        metrics.median_wait_s,
        metrics.p95_wait_s,
        metrics.p99_wait_s,
        metrics.max_wait_s,
    ];
    for (is, should) in waits.into_iter().zip([950.0, 900.0, 1_800.0, 1_900.0, 1_900.0]) {
        near(is, should, 1.0);
    }
    near(metrics.max_jct_s, 2_000.0, 1.0);
    near(metrics.jct_over_lower_bound, 1.0, 1e-3);
}

#[test]
fn evaluations_are_deterministic_under_every_policy() {
    for policy in POLICY_NAMES {
        let run = || evaluated(synthetic_on(policy, EstimatorKind::Noisy(0.3), 120));
        let (first, second) = (run(), run());
        assert_eq!(first, second, "{policy}");
        assert_eq!((first.metrics.jobs, first.metrics.completed), (120, 120), "{policy}");
    }
}

#[test]
fn no_schedule_beats_the_lower_bound_or_the_capacity() {
    for policy in ["fifo", "spd", "las", "a-srpt"] {
        let done = evaluated(synthetic_on(policy, EstimatorKind::Oracle, 150));
        let metrics = &done.metrics;
        assert!(metrics.mean_jct_s >= metrics.lower_bound_mean_jct_s, "{metrics:?}");
        assert!(metrics.gpu_busy > 0.0 && metrics.gpu_busy <= 1.0 && metrics.gpu_busy_while_arriving <= 1.0);
        let held: f64 =
            done.jobs.iter().map(|job| job.ran().as_secs_f64() * job.devices_milli as f64 / 1e3).sum();
        near(metrics.gpu_busy, held / 32.0 / metrics.makespan_s, 1e-9);
        assert!(done.series.busy.iter().all(|(_, busy)| *busy <= 32));
        assert!(metrics.median_jct_s <= metrics.p95_jct_s && metrics.p95_jct_s <= metrics.p99_jct_s);
        near(metrics.jct_over_lower_bound, metrics.mean_jct_s / metrics.lower_bound_mean_jct_s, 1e-9);
        near(metrics.stops_per_job, metrics.preemptions as f64 / 150.0, 1e-9);
        overlap_nowhere(&done);
    }
}

/// Checks that whole devices belong to one job at a time.
fn overlap_nowhere(done: &EvaluationResult) {
    for pair in done.spans.windows(2) {
        assert!(pair[0].device != pair[1].device || pair[0].to <= pair[1].from, "{pair:?}");
    }
}

/// A long job that is stopped at 300 s for one of 100 s, with these seconds to save and to restart.
fn stopped_for_a_shorter_one(save: u64, restart: u64) -> EvaluationResult {
    let stop_cost = StopCost { save: secs(save), restart: secs(restart) };
    let behavior = JobBehavior { stop_cost, ..JobBehavior::default() };
    let jobs = vec![job(0, 4, 1_000), job(300, 4, 100)];
    evaluated(Evaluation { behavior, ..evaluation("srtf-oracle", 1, 4, jobs) })
}

#[test]
fn a_stop_costs_the_time_to_save_a_checkpoint_and_to_load_it() {
    for (save, restart) in [(15, 45), (60, 600)] {
        let done = stopped_for_a_shorter_one(save, restart);
        let [long, short] = &done.jobs[..] else { panic!("{done:?}") };
        assert_eq!((long.attempts.len(), long.state), (2, JobState::Completed));
        near(short.ended.unwrap().as_secs_f64(), (300 + save + 100) as f64, 0.1);
        near(long.ran().as_secs_f64(), (1_000 + save + restart) as f64, 0.1);
        near(long.ended.unwrap().as_secs_f64(), (1_100 + save + restart) as f64, 0.1);
    }
}

#[test]
fn a_job_that_is_nearly_done_when_it_is_stopped_still_pays_for_the_stop() {
    let jobs = vec![job(0, 4, 1_000), job(300, 4, 695), job(995, 4, 1)];
    let done = evaluated(evaluation("srtf-oracle", 1, 4, jobs));
    assert!(done.jobs.iter().all(|job| job.state == JobState::Completed), "{done:?}");
    let stops: usize = done.jobs.iter().map(|job| job.attempts.len() - 1).sum();
    let worked: f64 = done.jobs.iter().map(|job| job.ran().as_secs_f64()).sum();
    near(worked, 1_696.0 + 60.0 * stops as f64, 0.5);
    assert!(stops >= 1, "{done:?}");
}

/// The events of a job of this many days, with or without reports.
fn events_of_a_job_of(days: u64, reporting: f64) -> u64 {
    let behavior = JobBehavior { reporting, ..JobBehavior::default() };
    let jobs = vec![job(0, 4, days * 86_400)];
    evaluated(Evaluation { behavior, ..evaluation("fifo", 1, 4, jobs) }).metrics.events
}

#[test]
fn a_job_of_days_reports_some_dozens_of_times() {
    let silent = events_of_a_job_of(10, 0.0);
    assert_eq!(silent, events_of_a_job_of(1, 0.0));
    let more = |days| events_of_a_job_of(days, 1.0) - silent;
    assert!(more(1) > 20 && more(10) < 150 && more(10) < more(1) + 30, "{} {}", more(1), more(10));
}

#[test]
fn policies_see_the_progress_of_jobs_that_report() {
    // Every estimate is an hour, and the first job takes three: without its reports, no job of an hour that
    // arrives at 1000 s ends before the second job can start.
    let start_of_last = |reporting| {
        let jobs = vec![job(0, 3, 10_800), job(1, 4, 100), job(1_000, 1, 3_600)];
        let behavior = JobBehavior { reporting, ..JobBehavior::default() };
        let estimator = EstimatorKind::Constant;
        let done = evaluated(Evaluation { behavior, estimator, ..evaluation("easy-backfill", 1, 4, jobs) });
        done.jobs[2].started.unwrap().as_secs_f64()
    };
    near(start_of_last(1.0), 1_000.0, 0.1);
    near(start_of_last(0.0), 10_900.0, 0.1);
}

#[test]
fn the_seed_decides_which_jobs_may_be_stopped() {
    let jobs: Vec<WorkloadJob> = (0..400).map(|number| job(number, 1, 10)).collect();
    let preemptible = |seed, preemptible: f64| -> Vec<bool> {
        let behavior = JobBehavior { preemptible, ..JobBehavior::default() };
        let specs = jobs.iter().enumerate().map(|(index, job)| behavior.submitted(seed, index, job));
        specs.map(|spec| spec.preemptible).collect()
    };
    let count = |drawn: &[bool]| drawn.iter().filter(|it| **it).count();
    let drawn = preemptible(1, 0.6);
    assert_eq!((count(&preemptible(1, 0.0)), count(&preemptible(1, 1.0))), (0, 400));
    assert!((200..280).contains(&count(&drawn)), "{}", count(&drawn));
    assert_eq!(drawn, preemptible(1, 0.6));
    assert_ne!(drawn, preemptible(2, 0.6));
}

#[test]
fn a_preempted_job_continues_from_its_checkpoint() {
    let done = stopped_for_a_shorter_one(1, 0);
    let [long, short] = &done.jobs[..] else { panic!("{done:?}") };
    assert_eq!((long.attempts.len(), short.attempts.len(), done.metrics.preemptions), (2, 1, 1));
    near(short.ended.unwrap().as_secs_f64(), 401.0, 0.1);
    near(long.ended.unwrap().as_secs_f64(), 1_101.0, 0.1);
    near(long.ran().as_secs_f64(), 1_001.0, 0.1);
    assert_eq!((long.state, short.state), (JobState::Completed, JobState::Completed));
}

/// Two replicas that sum a gigabyte of gradients in each iteration.
fn pair(at_secs: u64, iterations: u64, pace: f64) -> WorkloadJob {
    let stage = PipelineStage {
        replicas: 2,
        compute_seconds: 0.1,
        compute_seconds_on: [].into(),
        activation_bytes: 0.0,
        gradient_bytes: 1e9,
    };
    let model = ModelDescription { stages: vec![stage], ..ModelDescription::default() };
    let plain = job(at_secs, 2, iterations);
    WorkloadJob { spec: JobSpec { model: Some(model), ..plain.spec }, pace, ..plain }
}

#[test]
fn a_gang_is_as_fast_as_its_placement_allows() {
    // Each replica sends 1e9 bytes: in 0.02 s over 50 GB/s, or in 0.96 s over a third of 25 Gb/s.
    let (together, apart) = (0.1 + 1e9 / 50e9, 0.1 + 1e9 / (25e9 / 8.0 / 3.0));
    let on_one_machine = || {
        let mut job = job(0, 2, 10_000);
        job.spec.demand.spread = Spread::Even;
        job
    };
    let jobs = vec![on_one_machine(), on_one_machine(), pair(1, 100, together)];
    let done = evaluated(evaluation("fifo", 2, 3, jobs));
    let gang = &done.jobs[2];
    assert_eq!(gang.nodes.len(), 2, "one device of three is left on each");
    near(gang.ran().as_secs_f64(), 100.0 * apart, 0.05);
    near(gang.gang_slowdown.unwrap(), apart / together, 1e-9);
    let alone = evaluated(evaluation("fifo", 2, 3, vec![pair(1, 100, together)]));
    near(alone.jobs[0].ran().as_secs_f64(), 100.0 * together, 0.05);
    near(alone.metrics.mean_gang_slowdown, 1.0, 1e-9);
}

#[test]
fn estimators_learn_from_ended_jobs_and_accuracy_separates_first_seen_ones() {
    let recurring = || {
        let mut jobs: Vec<WorkloadJob> = (0..40).map(|number| job(number * 200, 1, 100)).collect();
        jobs.iter_mut().for_each(|job| job.spec.group = Some("daily".into()));
        jobs
    };
    let score =
        |estimator| evaluated(Evaluation { estimator, ..evaluation("spd", 1, 4, recurring()) }).estimates;
    let learned = score(EstimatorKind::RecentMedian);
    assert_eq!((learned.first_seen.jobs, learned.recurring.jobs), (1, 39));
    assert_eq!(learned.first_seen.estimated, 0);
    assert!(learned.recurring.errors.unwrap().mape < 1e-3);
    assert_eq!(score(EstimatorKind::Oracle).all.errors.unwrap().mape, 0.0);
    assert_eq!(score(EstimatorKind::GroupMean).recurring.errors.unwrap().within_factor_2, 1.0);
    let noisy = score(EstimatorKind::Noisy(0.5)).all.errors.unwrap();
    assert!(noisy.mape > 0.2 && noisy.mape < 0.8, "{noisy:?}");
    assert_eq!(score(EstimatorKind::Constant).all.errors.unwrap().median_relative_error, 35.0);
}

#[test]
fn invalid_evaluations_are_refused_with_a_reason() {
    let refusal = |evaluation| evaluate(evaluation, &mut Counter::default()).unwrap_err();
    assert_eq!(refusal(evaluation("fifo", 1, 4, vec![])), EvaluationError::NoJobs);
    let unknown = refusal(evaluation("tea leaves", 1, 4, vec![job(0, 1, 1)])).to_string();
    assert!(unknown.contains("there is no policy 'tea leaves'"), "{unknown}");
    let wide = refusal(evaluation("fifo", 1, 4, vec![job(0, 1, 1), job(1, 5, 1)])).to_string();
    assert!(wide.starts_with("job 1 was refused: no node can ever run this job"), "{wide}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn two_thousand_jobs_of_philly_are_evaluated_quickly() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/philly/philly_pollux_66k.csv.gz");
    let Ok(file) = std::fs::File::open(path) else {
        eprintln!("skipped: there is no trace at {path}");
        return;
    };
    let trace = read(file, &ReadOptions::default()).unwrap().part(0, Some(2_000));
    let mut evaluation = evaluation("a-srpt", 16, 8, Vec::new());
    let mut pace = Pace::on(&evaluation.shapes);
    let made = workload(&trace, &evaluation.shapes, None, 1, |model, devices| pace.fastest(model, devices));
    evaluation.jobs = made.with_load(0.9, 128).jobs;
    evaluation.estimator = EstimatorKind::Forest;
    let jobs = evaluation.jobs.len();
    let done = evaluated(evaluation);
    assert_eq!((done.metrics.completed, done.metrics.jobs), (jobs, jobs));
    assert!(done.metrics.mean_gang_slowdown >= 1.0 - 1e-9, "{:?}", done.metrics);
    assert!(done.estimates.all.estimated > 1_500, "{:?}", done.estimates);
}
