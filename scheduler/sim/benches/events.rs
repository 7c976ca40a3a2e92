//! How many events a second a simulated cluster handles on one core: run by hand, prints a table.
//!
//!     cargo bench -p cohabit-sim --bench events -- 1000 100000 fifo-greedy easy-backfill a-srpt
//!
//! Machines with eight devices each, synthetic jobs at a load of nine tenths, true estimates. Counted is what
//! the production cores handle, head and workers together; the policy's thoughts are part of the time.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
#![expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on ends here")]

use std::time::Instant;

use cohabit_sim::trace::synthetic;
use cohabit_sim::workload::{Pace, WorkloadJob, workload};
use cohabit_sim::{
    ClusterSpec, EstimatorKind, Evaluation, Hardware, InterferenceContext, MachineSpec, Observer, evaluate,
};

const SEED: u64 = 1;
const LOAD: f64 = 0.9;

/// A real clock, in microseconds.
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
        estimator: EstimatorKind::Oracle,
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

/// The most memory that this process has had; 0 where the system does not tell.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1_024
}
