//! A-SRPT's turns in a live cluster: start order, explanations, and agreement with the simulator.
//!
//! Jobs are replicas that sleep for as long as their model's iterations take, so they run as long as the
//! policy predicts.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_client::types::{
    Demand, GpuRequest, JobSpec, LaunchMode, ModelDescription, PipelineStage, Span, Spread, Time,
};
use cohabit_sim::workload::WorkloadJob;
use cohabit_sim::{
    EstimatorKind, Evaluation, Hardware, InterferenceContext, JobBehavior, MachineSpec, Observer, SimProgram,
    evaluate,
};
use serde_json::Value;

use crate::kit::*;

/// Seconds that an iteration takes.
const ITERATION: f64 = 0.25;

/// Replicas and iterations of a job.
#[derive(Clone, Copy)]
struct Job {
    replicas: u32,
    iterations: u64,
}

const fn job(replicas: u32, iterations: u64) -> Job {
    Job { replicas, iterations }
}

fn model(replicas: u32) -> String {
    format!("[[stages]]\nreplicas = {replicas}\ncompute-seconds = {ITERATION}\n")
}

fn submit(cluster: &Cluster, Job { replicas, iterations }: Job) -> String {
    let file = format!("{replicas}.toml");
    std::fs::write(cluster.folder().join(&file), model(replicas)).unwrap();
    let (gpus, count) = (replicas.to_string(), iterations.to_string());
    let flags = ["--gpus", &gpus, "--nodes", "any", "--model", &file, "--iterations", &count];
    cluster.submit(&flags, &format!("sleep {}", iterations as f64 * ITERATION))
}

/// Indices of jobs in the order of their starts.
fn order<T: PartialOrd>(starts: &[T]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by(|a, b| starts[*a].partial_cmp(&starts[*b]).unwrap());
    order
}

/// Microseconds since 1970 of a time in a document.
fn moment(job: &Value, key: &str) -> i64 {
    let text = job[key].as_str().unwrap_or_else(|| panic!("no {key} in {job}"));
    text.parse::<jiff::Timestamp>().unwrap().as_microsecond()
}

/// A clock for plan times that always shows zero.
struct NullObserver;

impl Observer for NullObserver {
    fn progressed(&mut self, _: usize, _: usize) {}

    fn clock_us(&mut self) -> u64 {
        0
    }
}

/// Start times of these jobs in the simulator, submitted at these microseconds, on one machine of four slots.
fn simulated(jobs: &[Job], submitted: &[i64]) -> Vec<Time> {
    let evaluation = Evaluation {
        shapes: vec![MachineSpec::new("node0", 4)],
        jobs: jobs.iter().zip(submitted).map(|(job, at)| workload(*job, at - submitted[0])).collect(),
        hardware: Hardware::default(),
        policy: "a-srpt-turn".into(),
        knowledge: InterferenceContext::default(),
        sensitivity: Arc::default(),
        fair_share: true,
        estimator: EstimatorKind::Oracle,
        behavior: JobBehavior::default(),
        seed: 1,
    };
    let evaluated = evaluate(evaluation, &mut NullObserver).unwrap();
    evaluated.jobs.iter().map(|job| job.started.unwrap()).collect()
}

fn workload(Job { replicas, iterations }: Job, at_us: i64) -> WorkloadJob {
    let stage = PipelineStage {
        replicas,
        compute_seconds: ITERATION,
        compute_seconds_on: BTreeMap::new(),
        activation_bytes: 0.0,
        gradient_bytes: 0.0,
    };
    let demand = Demand { gpus: GpuRequest::Whole(replicas), spread: Spread::Free, ..Demand::default() };
    let spec = JobSpec {
        demand,
        launch: LaunchMode::PerGpu,
        model: Some(ModelDescription { stages: vec![stage], ..ModelDescription::default() }),
        ..SimProgram::working(Span::ZERO).job()
    };
    let (at, alone_milli) = (Time::from_micros(at_us as u64), demand.total_milli());
    WorkloadJob { line: None, at, user: "ada".into(), spec, iterations, pace: ITERATION, alone_milli }
}

#[test]
fn jobs_start_in_the_same_order_as_in_the_simulator() {
    let cluster = Cluster::with_policy("a-srpt-turn", &["host:4"]);
    // Their virtual completions and their starts are at least half a second apart.
    let jobs = [job(2, 12), job(4, 3), job(1, 2), job(3, 4)];
    let submitted: Vec<String> = jobs.iter().map(|job| submit(&cluster, *job)).collect();
    let ended: Vec<Value> = submitted.iter().map(|job| cluster.end(job)).collect();
    assert!(ended.iter().all(|job| job["state"] == "COMPLETED"), "{ended:?}");
    let live: Vec<i64> = ended.iter().map(|job| moment(job, "started_at")).collect();
    let arrivals: Vec<i64> = ended.iter().map(|job| moment(job, "submitted_at")).collect();
    let simulated = simulated(&jobs, &arrivals);
    assert_eq!(order(&live), order(&simulated), "live {live:?}, simulated {simulated:?}");
    assert_ne!(order(&live), [0, 1, 2, 3], "first come, first served would do the same");
}

#[test]
fn a_job_shows_its_virtual_turn_and_its_forecast() {
    let cluster = Cluster::with_policy("a-srpt-turn", &["host:1"]);
    let (long, longer) = (submit(&cluster, job(1, 400)), submit(&cluster, job(1, 4_000)));
    let waiting = cluster.show(&longer);
    assert_eq!(waiting["reason_code"], "waiting_for_virtual_turn");
    let (starts_at, ends_at) =
        (moment(&waiting["predicted"], "starts_at"), moment(&waiting["predicted"], "ends_at"));
    assert_eq!(waiting["predicted"]["runtime_s"], 1_000.0);
    assert!((ends_at - starts_at - 1_000_000_000).abs() < 1_000_000, "{waiting}");
    assert!(
        starts_at - moment(&waiting, "submitted_at") >= 1_000_000_000,
        "it is its turn after 100 + 1,000 s"
    );
    let explained = cluster.ok(&["explain", &longer]);
    assert!(explained.contains("virtual") && explained.contains("Expected start: in about"), "{explained}");
    let listed = cluster.json(&["list"]);
    assert!(listed["jobs"][1]["predicted"]["starts_at"].is_string(), "{listed}");
    cluster.ok(&["cancel", &long, &longer]);
}

#[test]
fn a_start_is_explained_with_its_virtual_turn() {
    let cluster = Cluster::with_policy("a-srpt-turn:theta=2", &["host:1"]);
    let quick = submit(&cluster, job(1, 1));
    assert_eq!(cluster.end(&quick)["state"], "COMPLETED");
    let explained = cluster.ok(&["explain", &quick]);
    assert!(explained.contains("virtual"), "{explained}");
}

#[test]
fn an_unknown_policy_is_refused_with_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let start = |policy: &str| {
        let arguments = ["head", "start", "--listen", "127.0.0.1:0", "--state", "head", "--policy", policy];
        CommandOutput::from(cohabit(folder.path()).args(arguments).output().unwrap())
    };
    let ran = start("a-srtp");
    assert!(ran.code == 78 && ran.stderr.contains("a-srpt"), "{}: {}", ran.code, ran.stderr);
    let ran = start("a-srpt-turn:thetta=1");
    assert!(ran.code == 78 && ran.stderr.contains("theta"), "{}: {}", ran.code, ran.stderr);
}
