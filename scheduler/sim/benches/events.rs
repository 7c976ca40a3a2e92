//! Measures how many events per second a simulated cluster handles on one core, and prints a table. Run it by
//! hand:
//!
//!     cargo bench -p cohabit-sim --bench events -- 1000 100000 fifo-greedy easy-backfill a-srpt
//!
//! Machines have eight devices each, jobs are synthetic with a load of 0.9 and exact estimates. Events are
//! those that the production cores of head and workers handle; the time of the policy is included.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
#![expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on ends here")]

use std::time::Instant;

use cohabit_sim::trace::synthetic;
use cohabit_sim::workload::{Pace, WorkloadJob, workload};
use cohabit_sim::{
    ClusterSpec, EstimatorKind, Evaluation, Hardware, InterferenceContext, JobBehavior, MachineSpec,
    Observer, evaluate,
};

const SEED: u64 = 1;
const LOAD: f64 = 0.9;

/// A real clock in microseconds.
struct Clock(Instant);

impl Observer for Clock {
    fn progressed(&mut self, _: usize, _: usize) {}

    fn clock_us(&mut self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut number = |usual: usize| arguments.next().map_or(usual, |it| it.parse().unwrap());
    let (machines, jobs) = (number(1_000), number(100_000));
    let named: Vec<String> = arguments.collect();
    let usual = ["fifo-greedy", "easy-backfill", "a-srpt"].map(str::to_owned).to_vec();
    let policies = if named.is_empty() { usual } else { named };
    let spec: ClusterSpec = format!("{machines}x8:V100@25g").parse().unwrap();
    let (shapes, jobs) = (spec.shapes(), drawn(&spec, jobs));
    println!("| machines | jobs | policy | events | seconds | events/s | plans | plan p50, us | peak MiB |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for policy in policies {
        println!("{}", row(&shapes, &jobs, policy));
    }
}

fn drawn(spec: &ClusterSpec, jobs: usize) -> Vec<WorkloadJob> {
    let shapes = spec.shapes();
    let mut pace = Pace::on(&shapes);
    let made =
        workload(&synthetic(jobs, SEED), &shapes, None, SEED, |model, devices| pace.fastest(model, devices));
    made.with_load(LOAD, spec.devices()).jobs
}

fn row(shapes: &[MachineSpec], jobs: &[WorkloadJob], policy: String) -> String {
    let evaluation = Evaluation {
        shapes: shapes.to_vec(),
        hardware: Hardware::default(),
        jobs: jobs.to_vec(),
        policy,
        knowledge: InterferenceContext::default(),
        sensitivity: std::sync::Arc::default(),
        fair_share: true,
        estimator: EstimatorKind::Oracle,
        behavior: JobBehavior::default(),
        seed: SEED,
    };
    let it = evaluate(evaluation, &mut Clock(Instant::now())).unwrap().metrics;
    let (machines, per_second) = (shapes.len(), it.events as f64 / it.wall_s);
    format!(
        "| {machines} | {} | {} | {} | {:.1} | {per_second:.0} | {} | {} | {} |",
        it.completed,
        it.policy,
        it.events,
        it.wall_s,
        it.plans,
        it.plan_us_p50,
        peak_mib()
    )
}

/// Peak resident memory of this process in MiB; 0 where the system does not report it.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1_024
}
