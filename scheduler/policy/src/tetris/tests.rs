//! Small examples computed by hand, and all pairs tried on random clusters.

use std::sync::Arc;

use cohabit_types::{Bytes, Demand, Estimate, GpuRequest, Placement, ReasonCode, Share, Span};
use proptest::prelude::*;

use crate::tests::colocated::placed_on;
use crate::tests::kit::{anywhere, gpus, job, node, part, placed, view};
use crate::{Action, NodeView, PendingJob, Plan, View, parse_policy};

fn plan_of(name: &str, view: &View) -> Plan {
    let mut policy = parse_policy(name).unwrap();
    policy.learn(view, &view.as_changes());
    policy.plan(view)
}

fn lasting(secs: u64, mut job: PendingJob) -> PendingJob {
    let estimate = Estimate { runtime: Some(Span::from_secs(secs)), ..Estimate::default() };
    Arc::make_mut(&mut job.traits).estimate = Some(estimate);
    job
}

/// Two nodes with 4 GPUs and 8 cores each; of the second, one GPU is free. Job 1 needs a GPU and a core, job
/// 2 four GPUs, both for 100 s. Alignments: job 1 has 1/4 + 1/8 = 0.375 on the first node and 1/16 + 1/8 =
/// 0.1875 on the second; job 2 has 1 on the first. Of the cluster, job 1 needs 1/8 + 1/16 and job 2 1/2, so
/// their work is 18.75 s and 50 s. The weight is (0.375 + 0.1875 + 1) / (18.75 + 18.75 + 50) = 0.017857, and
/// the scores are 0.040, -0.147 and 0.107.
fn where_first_fit_fails() -> View {
    let nodes = vec![node(1, &[1_000; 4]), node(2, &[1_000, 0, 0, 0])];
    let small = lasting(100, job(1, Demand { cpus: 1, ..gpus(1) }));
    view(nodes, vec![small, lasting(100, job(2, gpus(4)))])
}

#[test]
fn packing_starts_two_jobs_where_first_fit_starts_one() {
    let view = where_first_fit_fails();
    assert_eq!(placed(&plan_of("fifo", &view)), [1]);
    let plan = plan_of("tetris", &view);
    assert_eq!(placed_on(&view, &plan), [(2, 0, 0), (1, 1, 0)]);
    let why: Vec<&String> = plan
        .actions
        .iter()
        .map(|action| match action {
            Action::Place { why, .. } => why,
            Action::Preempt { .. }
            | Action::Reclaim { .. }
            | Action::StopIdle { .. }
            | Action::Allot { .. } => {
                panic!("no job is stopped or changed")
            }
        })
        .collect();
    let best = |node, alignment| format!("fits what is free on {node} best (alignment {alignment})");
    assert_eq!(why, [&best("node1", "1.00"), &best("node2", "0.19")]);
}

/// Job 1 has alignment 1 and 1000 s of the cluster's GPUs, job 2 alignment 1/2 and 5 s. The weight is 1.5 /
/// 1005, so the scores are -0.493 and 0.493.
#[test]
fn a_much_shorter_job_goes_before_a_better_aligned_one() {
    let jobs = vec![lasting(1_000, job(1, gpus(2))), lasting(10, job(2, gpus(1)))];
    assert_eq!(placed(&plan_of("tetris", &view(vec![node(1, &[1_000; 2])], jobs))), [2]);
}

#[test]
fn of_jobs_that_need_the_same_the_one_with_the_least_left_goes_first() {
    let mut resumed = lasting(500, job(3, gpus(1)));
    resumed.attained.worked = Span::from_secs(450);
    let jobs = vec![lasting(100, job(1, gpus(1))), lasting(60, job(2, gpus(1))), resumed];
    assert_eq!(placed(&plan_of("tetris", &view(vec![node(1, &[1_000; 2])], jobs))), [3, 2]);
}

#[test]
fn a_larger_priority_goes_first_however_it_fits() {
    let urgent = PendingJob { priority: 1, ..lasting(10_000, job(2, gpus(1))) };
    let jobs = vec![lasting(10, job(1, gpus(2))), urgent];
    assert_eq!(placed(&plan_of("tetris", &view(vec![node(1, &[1_000; 2])], jobs))), [2]);
}

#[test]
fn jobs_for_several_nodes_go_before_those_that_would_break_them_up() {
    let gang = |number, secs| lasting(secs, job(number, Demand { nodes: 2, ..gpus(2) }));
    let jobs = vec![lasting(10, job(1, gpus(1))), gang(2, 500), gang(3, 400)];
    let nodes = vec![node(1, &[1_000; 2]), node(2, &[1_000; 2])];
    assert_eq!(placed(&plan_of("tetris", &view(nodes, jobs))), [3]);
}

#[test]
fn a_job_for_any_nodes_is_spread_only_where_no_node_holds_it() {
    let nodes = || vec![node(1, &[1_000, 1_000, 0]), node(2, &[1_000; 3])];
    let parts = |demand| {
        let plan = plan_of("tetris", &view(nodes(), vec![job(1, demand)]));
        let [Action::Place { placement: Placement { parts, .. }, .. }] = &plan.actions[..] else {
            panic!("{plan:?}")
        };
        parts.iter().map(|part| part.devices.len()).collect::<Vec<_>>()
    };
    assert_eq!(parts(anywhere(3)), [3]);
    assert_eq!(parts(anywhere(4)).iter().sum::<usize>(), 4);
    assert_eq!(parts(anywhere(4)).len(), 2);
}

#[test]
fn within_a_node_a_share_goes_to_the_fullest_device_that_it_fits() {
    let jobs = vec![job(1, part(300)), job(2, part(300)), job(3, part(300))];
    let view = view(vec![node(1, &[1_000, 700, 200])], jobs);
    assert_eq!(placed_on(&view, &plan_of("tetris", &view)), [(1, 0, 1), (2, 0, 1), (3, 0, 0)]);
}

#[test]
fn a_job_waits_for_what_is_short_or_for_better_ones() {
    let view = view(vec![node(1, &[1_000, 0])], vec![job(1, gpus(2)), job(2, gpus(1))]);
    let mut policy = parse_policy("tetris").unwrap();
    policy.learn(&view, &view.as_changes());
    let reasons: Vec<_> =
        policy.explain_pending(&view).into_iter().map(|it| (it.job.number, it.code, it.why)).collect();
    let better = "Jobs that fit the free resources better, or are shorter, go first".to_owned();
    let short = "needs 2 free GPUs on one node; the best node has 1 free".to_owned();
    let expected = [(1, ReasonCode::WaitingForDevices, short), (2, ReasonCode::WaitingForTurn, better)];
    assert_eq!(reasons, expected);
}

#[test]
fn a_dry_run_names_the_node_with_the_largest_alignment() {
    let view = view(vec![node(1, &[1_000, 0]), node(2, &[1_000; 2])], vec![]);
    let mut policy = parse_policy("tetris").unwrap();
    policy.learn(&view, &view.as_changes());
    let place = |policy: &mut dyn crate::Policy, demand| policy.dry_run(&view, &job(9, demand));
    let proposal = place(policy.as_mut(), gpus(1)).unwrap();
    assert_eq!(proposal.placement.parts[0].node, view.nodes[1].id);
    assert!(place(policy.as_mut(), gpus(3)).is_err());
}

/// The alignment by its definition; `None` where the job does not fit. No device is ever out of service here.
fn aligned(demand: &Demand, node: &NodeView) -> Option<f64> {
    let (count, share) = match demand.gpus {
        GpuRequest::Part(share) => (1, share),
        GpuRequest::Whole(count) => (count as usize, Share::WHOLE),
    };
    let memory = demand.gpu_memory.unwrap_or_default();
    let roomy = node.devices.iter().filter(|it| it.free >= share && it.memory_free >= Some(memory));
    if roomy.count() < count || node.cpus_free < demand.cpus || node.memory_free < demand.memory {
        return None;
    }
    let all = (node.devices.len() * 1_000) as f64;
    let free: f64 = node.devices.iter().map(|it| f64::from(it.free.0)).sum();
    let gpus = if all > 0.0 { count as f64 * f64::from(share.0) / all * free / all } else { 0.0 };
    let cpus = f64::from(demand.cpus) * f64::from(node.cpus_free) / f64::from(node.cpus).powi(2);
    let memory = demand.memory.0 as f64 * node.memory_free.0 as f64 / (node.memory.0 as f64).powi(2);
    Some(gpus + cpus + memory)
}

fn work(job: &PendingJob, nodes: &[NodeView]) -> f64 {
    let all: usize = nodes.iter().map(|node| node.devices.len()).sum();
    let (count, demand) = (nodes.len() as f64, &job.demand);
    let gpus = match demand.gpus {
        GpuRequest::Part(share) => share.as_f64(),
        GpuRequest::Whole(count) => f64::from(count),
    };
    let gpus = if all > 0 { gpus / all as f64 } else { 0.0 };
    let host = f64::from(demand.cpus) / 8.0 + demand.memory.0 as f64 / (64_u64 << 30) as f64;
    let runtime = job.traits.estimate.as_ref().and_then(|it| it.runtime).unwrap_or_default();
    runtime.as_secs_f64() * (gpus + host / count)
}

/// The score of every pair of a job and a node. The weight of work is that of the jobs that no other job
/// beats which needs the same.
fn scores(view: &View) -> Vec<(u64, usize, f64)> {
    let jobs: Vec<&PendingJob> = view.pending.values().collect();
    let nodes = || view.nodes.iter().enumerate();
    let pairs: Vec<(&PendingJob, usize, f64)> = jobs
        .iter()
        .flat_map(|job| nodes().filter_map(|(at, node)| Some((*job, at, aligned(&job.demand, node)?))))
        .collect();
    let is_beaten = |job: &PendingJob| {
        let key = |it: &PendingJob| (it.traits.estimate.as_ref().and_then(|it| it.runtime), it.id);
        jobs.iter().any(|other| other.demand == job.demand && key(other) < key(job))
    };
    let counted: Vec<_> = pairs.iter().filter(|(job, _, _)| !is_beaten(job)).collect();
    let mean = |of: &dyn Fn(&(&PendingJob, usize, f64)) -> f64| {
        counted.iter().map(|it| of(it)).sum::<f64>() / counted.len().max(1) as f64
    };
    let (alignment, works) = (mean(&|it| it.2), mean(&|it| work(it.0, &view.nodes)));
    let weight = if works > 0.0 { alignment / works } else { 0.0 };
    let score =
        |it: &(&PendingJob, usize, f64)| (it.0.id.number, it.1, it.2 - weight * work(it.0, &view.nodes));
    pairs.iter().map(score).collect()
}

fn views() -> impl Strategy<Value = View> {
    let devices = prop::collection::vec(prop_oneof![2 => Just(1_000_u32), 1 => 0_u32..1_000], 0..5);
    let nodes = prop::collection::vec((devices, 0_u32..9, 0_u64..65), 1..5).prop_map(|drawn| {
        let made = |(number, (devices, cpus, gib)): (u8, (Vec<u32>, u32, u64))| NodeView {
            cpus_free: cpus,
            memory_free: Bytes(gib << 30),
            ..node(number, &devices)
        };
        (1..).zip(drawn).map(made).collect::<Vec<_>>()
    });
    let gpus = prop_oneof![(1_u32..10).prop_map(|tenths| part(tenths * 100)), (0_u32..4).prop_map(gpus)];
    let jobs = prop::collection::vec((gpus, 0_u32..4, 0_u64..3, 1_u64..1_000), 1..15);
    (nodes, jobs).prop_map(|(nodes, jobs)| {
        let made = |(number, (demand, cpus, half, secs)): (u64, (Demand, u32, u64, u64))| {
            let demand = Demand { cpus, memory: Bytes(half << 34), ..demand };
            lasting(secs, job(number, demand))
        };
        view(nodes, (1..).zip(jobs).map(made).collect())
    })
}

proptest! {
    #[test]
    fn the_first_start_is_the_best_of_all_pairs(view in views()) {
        let scores = scores(&view);
        let plan = plan_of("tetris", &view);
        let Some(first) = plan.actions.first() else {
            prop_assert!(scores.is_empty());
            return Ok(());
        };
        let Action::Place { job, placement, .. } = first else { panic!("no job is stopped") };
        let at = view.nodes.iter().position(|node| node.id == placement.parts[0].node).unwrap();
        let chosen = scores.iter().find(|it| (it.0, it.1) == (job.number, at)).expect("it fits").2;
        let best = scores.iter().map(|it| it.2).fold(f64::NEG_INFINITY, f64::max);
        prop_assert!(chosen >= best - 1e-9, "{chosen} is less than {best}");
    }

    #[test]
    fn the_same_view_gets_the_same_plan(view in views()) {
        prop_assert_eq!(plan_of("tetris", &view), plan_of("tetris", &view));
    }
}
