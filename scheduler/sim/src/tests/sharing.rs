//! Sharing policies under measured interference: small cases by hand, and the published pairs if they are
//! available.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{
    ColocationEstimate, ColocationHistory, ColocationSet, GpuKind, Interference, InterferenceContext,
    ObservedInterference, ObservedMisfit, SoloMetricsTable, build_member,
};
use cohabit_scheduler_core::MemoryMisfit;
use cohabit_types::{Bytes, ColocationSample, Demand, GpuRequest, JobId, JobState, Share, Time};

use crate::evaluation::{
    ColocationLearner, EstimatorKind, Evaluation, EvaluationResult, JobBehavior, Observer, evaluate,
    evaluate_learning,
};
use crate::machine::Hardware;
use crate::machine_spec::MachineSpec;
use crate::program::SimProgram;
use crate::trace::{ReadOptions, Trace, read, synthetic};
use crate::workload::{Measurements, Pace, Workload, WorkloadJob, read_measurements, workload};

/// Ignores progress; its clock stands still.
struct SilentObserver;

impl Observer for SilentObserver {
    fn progressed(&mut self, _: usize, _: usize) {}

    fn clock_us(&mut self) -> u64 {
        0
    }
}

/// Beside each other, `light` takes 1.25 times as long and `heavy` twice; two of `heavy` do not fit.
const TABLE: &str = "set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible\n\
    1,v100,mps,light,8,10,8,1000000000,,,,true\n1,v100,mps,heavy,8,4,2,1000000000,,,,true\n\
    2,v100,mps,heavy,8,4,,1000000000,,,,false\n2,v100,mps,heavy,8,4,,1000000000,,,,false\n";

fn one_v100() -> Vec<MachineSpec> {
    vec![MachineSpec::new("node", 1).with_gpu("V100", Bytes(16 << 30))]
}

fn jobs_of(trace: &Trace, measured: &Measurements, shapes: &[MachineSpec]) -> Workload {
    let mut pace = Pace::on(shapes);
    workload(trace, shapes, Some(measured), 1, |model, devices| pace.fastest(model, devices))
}

fn measured(shapes: &[MachineSpec]) -> Measurements {
    Measurements::of(&read_measurements(TABLE.as_bytes()).unwrap(), shapes).unwrap()
}

/// Rows of submission, duration, GPUs and model.
fn trace(rows: &str) -> Trace {
    read(format!("submit_s,duration_s,gpus,model\n{rows}").as_bytes(), &ReadOptions::default()).unwrap()
}

/// Evaluates the rows on one V100 with the table as the truth.
fn judged(policy: &str, rows: &str) -> EvaluationResult {
    let shapes = one_v100();
    let measured = measured(&shapes);
    let jobs = jobs_of(&trace(rows), &measured, &shapes).jobs;
    evaluated(policy, shapes, jobs, &measured)
}

/// Jobs with exact estimates under a policy that knows nothing of interference.
fn evaluation(
    policy: &str,
    shapes: &[MachineSpec],
    jobs: &[WorkloadJob],
    truth: Arc<dyn Interference>,
) -> Evaluation {
    Evaluation {
        shapes: shapes.to_vec(),
        hardware: Hardware { truth, ..Hardware::default() },
        jobs: jobs.to_vec(),
        policy: policy.into(),
        knowledge: InterferenceContext::default(),
        sensitivity: Arc::default(),
        fair_share: false,
        estimator: EstimatorKind::Oracle,
        behavior: JobBehavior::default(),
        seed: 1,
    }
}

fn evaluated(
    policy: &str,
    shapes: Vec<MachineSpec>,
    jobs: Vec<WorkloadJob>,
    measured: &Measurements,
) -> EvaluationResult {
    let knowledge = InterferenceContext {
        interference: measured.table_truth(),
        solos: measured.solos(),
        ..InterferenceContext::default()
    };
    let evaluation = Evaluation { knowledge, ..evaluation(policy, &shapes, &jobs, measured.table_truth()) };
    evaluate(evaluation, &mut SilentObserver).unwrap()
}

fn ends(done: &EvaluationResult) -> Vec<f64> {
    done.jobs.iter().map(|job| job.ended.unwrap().as_secs_f64()).collect()
}

#[track_caller]
fn near(is: f64, should: f64, tolerance: f64) {
    assert!((is - should).abs() <= tolerance, "{is} instead of {should}");
}

#[test]
fn jobs_on_one_gpu_are_slowed_as_measured_until_one_ends() {
    let done = judged("fifo", "0,100,1,light\n0,100,1,heavy\n");
    // Light ends after 125 s. Heavy has done 62.5 s of its work by then, and does the rest alone.
    let ends = ends(&done);
    near(ends[0], 125.0, 0.1);
    near(ends[1], 162.5, 0.1);
    let metrics = &done.metrics;
    near(metrics.mean_slowdown, (1.25 + 1.625) / 2.0, 1e-3);
    // Heavy is above 1.3 for 125 of the 287.5 seconds that the two run.
    near(metrics.bound_violations, 125.0 / 287.5, 1e-3);
    near(metrics.gpu_occupied, 1.0, 1e-3);
    near(metrics.gpu_busy, 0.333 * 287.5 / 162.5, 1e-3);
    assert_eq!((metrics.completed, metrics.out_of_memory, metrics.preemptions), (2, 0, 0));
}

#[test]
fn remaining_work_is_retimed_when_a_job_arrives() {
    let done = judged("fifo", "0,100,1,heavy\n60,100,1,light\n");
    // Heavy does 60 s alone and its last 40 in 80; light does 64 s in these, and the other 36 alone.
    let ends = ends(&done);
    near(ends[0], 140.0, 0.1);
    near(ends[1], 60.0 + 80.0 + 36.0, 0.1);
}

#[test]
fn exclusive_jobs_run_one_after_the_other_on_one_gpu() {
    let shapes = one_v100();
    let measured = measured(&shapes);
    let shared = jobs_of(&trace("0,100,1,light\n0,100,1,heavy\n"), &measured, &shapes).jobs;
    let exclusive: Vec<WorkloadJob> = shared.iter().cloned().map(WorkloadJob::exclusive).collect();
    for (shared, exclusive) in shared.iter().zip(&exclusive) {
        assert_eq!(
            (shared.spec.demand.gpus, exclusive.spec.demand.gpus),
            (GpuRequest::Part(Share(333)), GpuRequest::Whole(1))
        );
        assert_eq!((shared.ideal(), shared.work()), (exclusive.ideal(), exclusive.work()));
        assert_eq!(shared.spec.model, exclusive.spec.model);
    }
    let done = evaluated("fifo", shapes, exclusive, &measured);
    let ends = ends(&done);
    near(ends[0], 100.0, 0.1);
    near(ends[1], 200.0, 0.1);
    near(done.metrics.mean_slowdown, 1.0, 1e-3);
    assert_eq!((done.metrics.bound_violations, done.metrics.out_of_memory), (0.0, 0));
}

#[test]
fn a_job_without_memory_is_retried_until_there_is_some() {
    let done = judged("fifo", "0,100,1,heavy\n0,100,1,heavy\n");
    // The second job fails after 10 s each time; the pauses are 5, 10, 20 and 40 s.
    let ends = ends(&done);
    near(ends[0], 100.0, 0.1);
    near(ends[1], 115.0 + 100.0, 0.2);
    let second = &done.jobs[1];
    assert_eq!((second.attempts.len(), second.out_of_memory, second.state), (5, 4, JobState::Completed));
    assert_eq!((done.metrics.out_of_memory, done.metrics.preemptions, done.metrics.completed), (4, 0, 2));
}

#[test]
fn a_job_that_allocates_more_than_requested_may_run_out_of_memory() {
    let shapes = one_v100();
    let measured = measured(&shapes);
    let mut jobs = jobs_of(&trace("0,50,1,light\n0,50,1,heavy\n"), &measured, &shapes).jobs;
    for job in &mut jobs {
        let program = SimProgram { gpu_memory: Some(Bytes(9 << 30)), ..SimProgram::of(&job.spec) };
        job.spec.entrypoint = program.job().entrypoint;
    }
    let done = evaluated("fifo", shapes, jobs, &measured);
    assert_eq!((done.jobs[0].out_of_memory, done.metrics.completed), (0, 2));
    assert!(done.jobs[1].out_of_memory > 0);
}

#[test]
fn jobs_on_several_gpus_do_not_share_and_the_load_counts_whole_ones() {
    let shapes: Vec<MachineSpec> =
        one_v100().into_iter().map(|shape| MachineSpec { devices: 4, ..shape }).collect();
    let made = jobs_of(&trace("0,1000,1,\n10,1000,2,\n100,1000,1,\n"), &measured(&shapes), &shapes);
    let demands: Vec<_> = made.jobs.iter().map(|job| (job.spec.demand.gpus, job.alone_milli)).collect();
    let part = GpuRequest::Part(Share(333));
    assert_eq!(demands, [(part, 1_000), (GpuRequest::Whole(2), 2_000), (part, 1_000)]);
    near(made.load(4).unwrap(), 4_000.0 / 100.0 / 4.0, 0.01);
    let gang = &made.jobs[1].spec;
    assert!(gang.demand.gpu_memory.is_none() && !gang.demand.may_have_neighbors());
    assert!(!["light", "heavy"].contains(&gang.name.as_str()), "{gang:?}");
    let single = &made.jobs[0].spec;
    assert!(single.demand.may_have_neighbors() && ["light", "heavy"].contains(&single.name.as_str()));
    let model = single.model.as_ref().unwrap();
    assert_eq!((model.batch_size, single.demand.gpu_memory.unwrap().0), (Some(8), 1_000_000_000));
    near(made.jobs[0].ideal().as_secs_f64(), 1_000.0, 0.3);
    let pairs: Vec<MachineSpec> = shapes.into_iter().map(|shape| shape.shared_by(2)).collect();
    let made = jobs_of(&trace("0,1000,1,\n"), &measured(&pairs), &pairs);
    assert_eq!(made.jobs[0].spec.demand.gpus, GpuRequest::Part(Share(500)));
}

/// The true model, with a count of the sets it was asked about.
#[derive(Debug)]
struct Counting(Arc<dyn Interference>, AtomicUsize);

impl Interference for Counting {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        self.1.fetch_add(sets.len(), Ordering::Relaxed);
        self.0.predict(sets)
    }
}

#[test]
fn policies_use_the_chosen_predictor() {
    let shapes = one_v100();
    let measured = measured(&shapes);
    let count_queries = |policy: &str| {
        let counting = Arc::new(Counting(measured.table_truth(), AtomicUsize::new(0)));
        let knowledge = InterferenceContext {
            interference: counting.clone(),
            solos: measured.solos(),
            ..InterferenceContext::default()
        };
        let jobs = jobs_of(&trace("0,100,1,light\n1,100,1,heavy\n"), &measured, &shapes).jobs;
        let evaluation =
            Evaluation { knowledge, ..evaluation(policy, &shapes, &jobs, measured.table_truth()) };
        assert_eq!(evaluate(evaluation, &mut SilentObserver).unwrap().metrics.completed, 2);
        counting.1.load(Ordering::Relaxed)
    };
    assert!(count_queries("isacpp") > 0);
    assert_eq!(count_queries("fifo"), 0);
}

/// The published pairs, if they are available.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn published(shapes: &[MachineSpec]) -> Option<Measurements> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/gavel/pairs_flat.csv");
    let Ok(file) = std::fs::File::open(path) else {
        eprintln!("skipped: there is no table at {path}");
        return None;
    };
    Some(Measurements::of(&read_measurements(file).unwrap(), shapes).unwrap())
}

fn cluster_of(model: &str) -> Vec<MachineSpec> {
    format!("4x4:{model}@25g").parse::<crate::ClusterSpec>().unwrap().shapes()
}

#[test]
fn two_runs_of_a_seed_on_the_published_pairs_are_equal() {
    for model in ["K80", "P100", "V100"] {
        let shapes = cluster_of(model);
        let Some(measured) = published(&shapes) else { return };
        let jobs = jobs_of(&synthetic(150, 3), &measured, &shapes).with_load(1.2, 16).jobs;
        let run = || evaluated("easy-backfill", shapes.clone(), jobs.clone(), &measured);
        let first = run();
        assert_eq!(first, run(), "{model}");
        let metrics = &first.metrics;
        assert_eq!(metrics.completed, jobs.len(), "{model}");
        assert!(metrics.mean_slowdown > 1.1 && metrics.bound_violations > 0.1, "{model}: {metrics:?}");
        assert!(
            metrics.gpu_occupied <= 1.0 && metrics.mean_jct_s >= metrics.lower_bound_mean_jct_s,
            "{metrics:?}"
        );
    }
}

#[test]
fn under_the_law_the_same_jobs_get_other_results() {
    let shapes = cluster_of("V100");
    let Some(measured) = published(&shapes) else { return };
    let jobs = jobs_of(&synthetic(100, 3), &measured, &shapes).with_load(1.2, 16).jobs;
    let run = |truth: Arc<dyn Interference>| {
        evaluate(evaluation("fifo", &shapes, &jobs, truth), &mut SilentObserver).unwrap().metrics
    };
    let (law, table) = (run(measured.law_truth()), run(measured.table_truth()));
    assert_eq!((law.completed, table.completed), (jobs.len(), jobs.len()));
    assert!((law.mean_slowdown - table.mean_slowdown).abs() > 1e-3, "{law:?} {table:?}");
}

/// Keeps the samples, and knows the truth after the first.
struct TruthAfterFirstSample {
    truth: InterferenceContext,
    seen: Vec<(u64, usize, f64)>,
}

impl ColocationLearner for TruthAfterFirstSample {
    fn observe(
        &mut self,
        _: Time,
        samples: &[ColocationSample],
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        for sample in samples {
            let job = sample.rank.attempt.job;
            let (_, traits) = lookup(job).expect("the head knows a job that runs");
            assert!(traits.model.as_ref().is_some_and(|model| model.name.is_some()));
            self.seen.push((job.number, sample.neighbors.len(), sample.rate));
        }
        Some(self.truth.clone())
    }

    fn observe_misfit(
        &mut self,
        _: Time,
        misfit: &MemoryMisfit,
        _: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        panic!("all sets of the test fit, and {misfit:?} did not")
    }
}

#[test]
fn learners_see_the_rates_of_jobs_that_report_and_policies_what_they_learn() {
    let shapes = one_v100();
    let measured = measured(&shapes);
    // The third job could run beside the first, which it slows too much.
    let jobs =
        jobs_of(&trace("0,4000,1,heavy\n100,400,1,light\n2000,400,1,light\n"), &measured, &shapes).jobs;
    let run = |reporting: f64| {
        // Nothing is known, so nothing seems to slow anything.
        let evaluation = Evaluation {
            behavior: JobBehavior { reporting, ..JobBehavior::default() },
            ..evaluation("isacpp", &shapes, &jobs, measured.table_truth())
        };
        let truth = InterferenceContext {
            interference: measured.table_truth(),
            solos: measured.solos(),
            ..InterferenceContext::default()
        };
        let mut learner = TruthAfterFirstSample { truth, seen: Vec::new() };
        let done = evaluate_learning(evaluation, &mut SilentObserver, &mut learner).unwrap();
        (learner.seen, done)
    };
    let (silent, _) = run(0.0);
    assert_eq!(silent, [], "jobs that report nothing teach nothing");
    let (seen, done) = run(1.0);
    assert_eq!(done.metrics.completed, 3);
    let rate = |job: u64, neighbors: usize| {
        let found = seen.iter().filter(|(number, beside, _)| (*number, *beside) == (job, neighbors));
        found.map(|(_, _, rate)| *rate).next_back()
    };
    let alone = jobs[0].iterations as f64 / 4_000.0;
    near(rate(1, 0).unwrap() / alone, 1.0, 0.01);
    if let Some(beside) = rate(1, 1) {
        near(beside / alone, 0.5, 0.01);
    }
}

/// Learns from misfits alone.
#[derive(Default)]
struct MisfitLearner {
    experience: ColocationHistory,
    misfits: usize,
}

impl ColocationLearner for MisfitLearner {
    fn observe(
        &mut self,
        _: Time,
        _: &[ColocationSample],
        _: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        None
    }

    fn observe_misfit(
        &mut self,
        _: Time,
        misfit: &MemoryMisfit,
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        self.misfits += 1;
        let (gpu, solos) = (GpuKind::named(&misfit.gpu), SoloMetricsTable::default());
        let member = |job: JobId| {
            let (demand, traits) = lookup(job).expect("the head knows the jobs on a device");
            build_member(&demand, &traits, &gpu, &solos)
        };
        self.experience.note_misfit(&ObservedMisfit {
            member: member(misfit.rank.attempt.job),
            neighbors: misfit.neighbors.iter().map(|job| member(*job)).collect(),
            sharing: misfit.sharing,
            at: misfit.at,
            gpu: gpu.clone(),
        });
        let InterferenceContext { interference, .. } = InterferenceContext::default();
        let interference = ObservedInterference::over(interference, &self.experience.sets());
        Some(InterferenceContext { interference: Arc::new(interference), ..InterferenceContext::default() })
    }
}

#[test]
fn a_set_that_did_not_fit_is_not_tried_again() {
    let shapes: Vec<MachineSpec> =
        one_v100().into_iter().map(|shape| MachineSpec { devices: 2, ..shape }).collect();
    let measured = measured(&shapes);
    let rows = "0,300,1,heavy\n0,300,1,heavy\n0,300,1,heavy\n0,300,1,heavy\n400,300,1,light\n";
    let jobs = jobs_of(&trace(rows), &measured, &shapes).jobs;
    let evaluation = || evaluation("hybrid", &shapes, &jobs, measured.table_truth());
    // Nothing is known, so every pair seems to fit: the two jobs without a GPU of their own try again and
    // again.
    let unlearned = evaluate(evaluation(), &mut SilentObserver).unwrap().metrics;
    let mut learner = MisfitLearner::default();
    let learned = evaluate_learning(evaluation(), &mut SilentObserver, &mut learner).unwrap().metrics;
    assert_eq!((unlearned.completed, learned.completed), (jobs.len(), jobs.len()));
    assert!(unlearned.out_of_memory > 4, "{unlearned:?}");
    assert!(learned.out_of_memory <= 2, "the jobs that were tried at once, each beside one: {learned:?}");
    assert_eq!(learned.out_of_memory, learner.misfits);
    assert!(learned.mean_jct_s < unlearned.mean_jct_s, "{learned:?} {unlearned:?}");
}
