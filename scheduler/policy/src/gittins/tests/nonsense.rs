//! Wrong, absent and absurd information: every job ends all the same, no device idles beside a job that fits
//! it, and jobs end about as soon as with an order that asks for no information.

use std::sync::Arc;

use cohabit_types::{Bytes, Estimate, ModelDescription, Slowdown, Span, Time};
use proptest::prelude::*;

use super::kit::{drawn, job, nodes, preemptible, watched};
use crate::interference::{ColocationEstimate, ColocationSet, Interference, InterferenceContext};
use crate::tests::cluster::{Ran, Report, TestCluster, TestJob};
use crate::tests::colocated::{plan_of, runs, training};
use crate::tests::kit::{anywhere, gpus, node, part, view};
use crate::{Action, FirstFit, JobTraits, Plan, RunPhase, View, parse_policy_with};

/// Numbers that no predictor should ever give.
const ABSURD: [f64; 8] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300, f64::MIN_POSITIVE, f64::MAX];

/// A predictor that gives this for everything.
#[derive(Debug, Clone, Copy)]
struct Absurd {
    slowdown: f64,
    uncertainty: f64,
    other: f64,
}

impl Interference for Absurd {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let Absurd { slowdown, uncertainty, other } = *self;
        let (memory, utilization) = (Some(other), Some(other));
        let estimate =
            ColocationEstimate { slowdown, uncertainty, memory, utilization, fits: other, measured: false };
        sets.iter().map(|set| vec![estimate; set.members.len()]).collect()
    }
}

fn trusting(predictor: Absurd, max_slowdown: Option<Slowdown>) -> InterferenceContext {
    InterferenceContext { interference: Arc::new(predictor), max_slowdown, ..InterferenceContext::default() }
}

/// What users and learned models may say of a job that truly takes this many seconds.
fn estimates() -> impl Strategy<Value = fn(u64) -> Option<Estimate>> {
    fn runtime(micros: u64) -> Option<Estimate> {
        let runtime = Some(Span::from_micros(micros));
        Some(Estimate { iterations: Some(micros), runtime, ..Estimate::default() })
    }
    prop::sample::select(vec![
        (|_| None) as fn(u64) -> Option<Estimate>,
        |_| Some(Estimate::default()),
        |_| runtime(0),
        |_| runtime(u64::MAX),
        |seconds| runtime(seconds * 100_000_000),
        |seconds| runtime(seconds * 10_000),
        |_| Some(Estimate { gpu_memory: Some(Bytes(u64::MAX)), ..Estimate::default() }),
    ])
}

/// What running jobs may say of their ends.
const REPORTS: [Report; 6] = [
    |_, _| None,
    |_, now| Some(now),
    |_, now| Some(now + Span::from_secs(1)),
    |_, _| Some(Time::EPOCH),
    |_, _| Some(Time::NEVER),
    // A hundred times as much as at the plan before, and then again next to nothing.
    |job, now| Some(now + Span::from_micros(1 << (10 + (job.id.number * 7 + now.as_micros()) % 40))),
];

fn lying(mut job: TestJob, change: impl FnOnce(&mut JobTraits)) -> TestJob {
    change(Arc::make_mut(&mut job.pending.traits));
    job
}

/// Jobs that take this long, of different users, for which only nonsense is known.
fn workloads(most: usize) -> impl Strategy<Value = Vec<TestJob>> {
    let demands = prop_oneof![3 => Just(gpus(1)), 2 => Just(part(400)), 1 => Just(anywhere(2))];
    let length = prop_oneof![3 => 1_u64..600, 1 => 3_000_u64..20_000];
    let iterations = prop::sample::select(vec![None, Some(0), Some(1), Some(u64::MAX)]);
    let drawn = (0_u64..20_000, demands, length, estimates(), iterations);
    prop::collection::vec(drawn, 5..most).prop_map(|drawn| {
        let each = drawn.into_iter().zip(1..);
        each.map(|((arrives, demand, length, estimate, iterations), number)| {
            lying(preemptible(job(number, arrives as f64, demand, length)), |traits| {
                (traits.estimate, traits.iterations) = (estimate(length), iterations);
                let name = Some(["vgg", "bert"][number as usize % 2].to_owned());
                traits.model = Some(ModelDescription { name, ..ModelDescription::default() });
            })
        })
        .collect()
    })
}

/// Checks that no job for one device waits beside one that runs nothing, unless room is kept.
fn check_idle(view: &View, plan: &Plan) {
    let stops = plan.actions.iter().any(|it| matches!(it, Action::Preempt { .. }));
    if stops || view.running.values().any(|job| job.phase == RunPhase::Stopping) {
        return;
    }
    let mut free = crate::FreeNodes::new(&view.nodes);
    let mut waiting = view.pending.clone();
    for action in &plan.actions {
        let Action::Place { job, placement, .. } = action else { continue };
        free.take_as_resident(*job, &waiting.remove(job).unwrap().demand, placement);
    }
    let idle = free.nodes().flat_map(|node| &node.devices).filter(|device| device.jobs.is_empty()).count();
    let left = waiting.values().find(|job| job.demand.total_devices() == 1);
    assert!(idle == 0 || left.is_none(), "{left:?} waits beside {idle} idle devices");
}

/// Runs the jobs, all of which end.
fn run_all(policy: &str, context: &InterferenceContext, report: Report, jobs: Vec<TestJob>) -> Vec<Ran> {
    let count = jobs.len();
    let policy = parse_policy_with(policy, context).unwrap();
    let mut watched = watched(policy, |_, _, _| {}, |view, plan, _| check_idle(view, plan));
    let mut cluster = TestCluster::new(nodes(2, 2), jobs, Box::new(FirstFit));
    cluster.stopping_takes = Span::from_secs(15);
    cluster.report = Some(report);
    let ran = cluster.run(&mut watched);
    assert_eq!(ran.len(), count, "every job ends");
    ran
}

#[test]
fn absurd_estimates_and_reports_keep_no_job_waiting_beside_an_idle_device() {
    let context = InterferenceContext::default();
    for (run, jobs) in drawn(workloads(40), 60).enumerate() {
        for policy in ["a-srpt", "hybrid", "a-srpt:quantum=0,stop-ratio=0,margin=0"] {
            run_all(policy, &context, REPORTS[run % REPORTS.len()], jobs.clone());
        }
    }
}

#[test]
fn absurd_predictions_keep_no_job_waiting_beside_an_idle_device() {
    let mut workloads = drawn(workloads(25), ABSURD.len() * ABSURD.len());
    for (at, slowdown) in ABSURD.into_iter().enumerate() {
        for (beside, uncertainty) in ABSURD.into_iter().enumerate() {
            let predictor = Absurd { slowdown, uncertainty, other: ABSURD[(at + beside) % ABSURD.len()] };
            let limit = (beside % 2 == 0).then_some(Slowdown(1_300));
            let report = REPORTS[(at + beside) % REPORTS.len()];
            run_all("hybrid", &trusting(predictor, limit), report, workloads.next().unwrap());
        }
    }
}

#[test]
fn absurd_predictions_put_nobody_beside_a_job_that_limits_its_slowdown() {
    let mut waiting = training(1, "heavy", 100);
    waiting.demand.max_slowdown = Some(Slowdown(1_300));
    let mut view = view(vec![node(1, &[1_000])], vec![waiting]);
    runs(&mut view, training(100, "heavy", 1_000), 0, 0, 1_000);
    let starts = |slowdown, uncertainty, other| {
        let context = trusting(Absurd { slowdown, uncertainty, other }, None);
        !plan_of("hybrid:preempt=off,later=1000", &context, &view).actions.is_empty()
    };
    assert!(starts(1.1, 0.01, 0.9), "a small slowdown is predicted, and that both fit");
    assert!(!starts(2.0, 0.01, 0.9));
    for absurd in [f64::NAN, -f64::NAN, f64::INFINITY] {
        assert!(!starts(absurd, 0.01, 0.9), "a slowdown of {absurd}");
        assert!(!starts(1.1, 0.01, absurd), "a probability to fit of {absurd}");
        assert!(!starts(1.4, absurd, 0.9), "an uncertainty of {absurd}");
    }
    assert!(!starts(1.4, -2.0, 0.9), "a negative uncertainty makes no slowdown smaller");
}

#[test]
fn without_any_truth_jobs_end_about_as_soon_as_by_least_attained_service() {
    let context = InterferenceContext::default();
    let mean = |policy: &str, report: Report| {
        let workloads = drawn(workloads(80), 12);
        let ran: Vec<Ran> = workloads.flat_map(|jobs| run_all(policy, &context, report, jobs)).collect();
        let took = |it: &Ran| it.ended_at.since(it.arrived_at).as_secs_f64();
        ran.iter().map(took).sum::<f64>() / ran.len() as f64
    };
    for report in REPORTS {
        let (robust, attained) = (mean("a-srpt", report), mean("las-tuned", report));
        assert!(robust <= 1.15 * attained, "{robust} s against {attained} s");
    }
}
