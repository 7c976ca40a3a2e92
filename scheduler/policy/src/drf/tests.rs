//! The example of the paper, and what dominant resource fairness promises on random clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{Bytes, Demand, HostShare, Placement, ReasonCode};
use proptest::prelude::*;

use crate::tests::kit::{anywhere, fits, gpus, job, node, part, placed, view};
use crate::{
    Action, FirstFit, FreeNodes, NodeView, PendingJob, Placer, Plan, Policy, Profile, View, ViewChange,
    parse_policy,
};

fn policy() -> Box<dyn Policy> {
    parse_policy("drf").unwrap()
}

fn plan_of(view: &View) -> Plan {
    let mut policy = policy();
    policy.learn(view, &view.as_changes());
    policy.plan(view)
}

fn of(user: &str, mut job: PendingJob) -> PendingJob {
    Arc::make_mut(&mut job.traits).user = user.to_owned();
    job
}

fn host(cpus: u32, gib: u64) -> Demand {
    Demand { cpus, memory: Bytes(gib << 30), ..gpus(0) }
}

/// Starts what the plan says: the jobs run from now on.
fn run(view: &mut View, plan: Plan) {
    let mut free = FreeNodes::new(&view.nodes);
    for action in plan.actions {
        let Action::Place { job, placement, .. } = action else { panic!("no job is stopped") };
        let job = view.pending.remove(&job).expect("it waits");
        free.take_as_resident(job.id, &job.demand, &placement);
        view.running.insert(job.id, job.placed(placement, view.now));
    }
    let nodes: Vec<NodeView> = free.nodes().cloned().collect();
    view.nodes = nodes;
}

/// Six jobs of each user, the first one of B.
fn two_users(a: Demand, b: Demand) -> Vec<PendingJob> {
    let jobs = (0..6).flat_map(|round| [of("B", job(2 * round + 1, b)), of("A", job(2 * round + 2, a))]);
    jobs.collect()
}

/// Section 4.1 and Table 1 of the paper: 9 CPUs and 18 GB, tasks of A need 1 CPU and 4 GB, those of B 3 CPUs
/// and 1 GB. The table's order is B, A, A, B, A; then both dominant shares are 2/3 and no CPU is left.
#[test]
fn the_example_of_the_paper_gives_three_tasks_to_a_and_two_to_b() {
    let whole = NodeView {
        cpus: 9,
        cpus_free: 9,
        memory: Bytes(18 << 30),
        memory_free: Bytes(18 << 30),
        ..node(1, &[])
    };
    let view = view(vec![whole], two_users(host(1, 4), host(3, 1)));
    assert_eq!(placed(&plan_of(&view)), [1, 2, 4, 3, 6]);
}

#[test]
fn the_same_holds_for_gpus_instead_of_memory_and_over_several_plans() {
    let whole = NodeView { cpus: 9, cpus_free: 9, ..node(1, &[1_000; 18]) };
    let (a, b) = (Demand { cpus: 1, ..gpus(4) }, Demand { cpus: 3, ..gpus(1) });
    let jobs = two_users(a, b);
    let mut view = view(vec![whole], vec![]);
    let mut order = Vec::new();
    for first in [1, 3, 5] {
        view.pending.extend(jobs[first - 1..=first].iter().map(|job| (job.id, job.clone())));
        let plan = plan_of(&view);
        order.extend(placed(&plan));
        run(&mut view, plan);
    }
    assert_eq!(order, [1, 2, 4, 3, 6], "B holds a third when its second job comes, and A two ninths");
}

#[test]
fn a_larger_priority_goes_first_among_all_users() {
    let urgent = PendingJob { priority: 1, ..of("A", job(3, gpus(1))) };
    let jobs = vec![of("A", job(1, gpus(1))), of("B", job(2, gpus(1))), urgent];
    let plan = plan_of(&view(vec![node(1, &[1_000; 2])], jobs));
    assert_eq!(placed(&plan), [3, 2], "and then B, which holds nothing");
}

#[test]
fn a_job_that_does_not_fit_lets_those_of_its_user_and_of_others_pass() {
    let jobs = vec![
        of("A", job(1, gpus(4))),
        of("A", job(2, gpus(1))),
        of("B", job(3, gpus(4))),
        of("B", job(4, gpus(1))),
    ];
    assert_eq!(placed(&plan_of(&view(vec![node(1, &[1_000; 2])], jobs))), [2, 4]);
}

#[test]
fn of_a_range_what_was_allotted_counts() {
    let range = Demand { cpus: 1, up_to: Some(HostShare { cpus: 8, memory: Bytes::ZERO }), ..gpus(1) };
    let mut view = view(
        vec![node(1, &[1_000]), node(2, &[1_000; 2])],
        vec![of("A", job(1, range)), of("B", job(2, gpus(1)))],
    );
    let plan = plan_of(&view);
    assert_eq!(placed(&plan), [1, 2]);
    run(&mut view, plan);
    // All GPUs but one are taken: A has 8 of 16 cores, B a third of the GPUs.
    view.pending = [of("A", job(3, gpus(1))), of("B", job(4, gpus(1)))].map(|job| (job.id, job)).into();
    assert_eq!(placed(&plan_of(&view)), [4]);
}

#[test]
fn jobs_share_gpus_as_under_first_fit_sharing() {
    let jobs = (1..=3).map(|number| of("A", job(number, part(300)))).collect();
    let view = view(vec![node(1, &[1_000; 2])], jobs);
    let plan = plan_of(&view);
    let devices = plan.actions.iter().map(|action| match action {
        Action::Place { placement: Placement { parts, .. }, .. } => parts[0].devices[0].to_string(),
        Action::Preempt { .. } | Action::Reclaim { .. } | Action::StopIdle { .. } | Action::Allot { .. } => {
            panic!("no job is stopped or changed")
        }
    });
    assert_eq!(devices.collect::<Vec<_>>(), ["gpu-0"; 3]);
}

#[test]
fn the_dominant_share_is_told_with_its_resource() {
    let mut view = view(
        vec![node(1, &[1_000; 4])],
        vec![
            of("A", job(1, Demand { cpus: 7, ..gpus(2) })),
            of("A", job(2, gpus(1))),
            of("B", job(3, gpus(1))),
        ],
    );
    let plan = plan_of(&view);
    let Action::Place { why, .. } = &plan.actions[0] else { panic!("a start") };
    assert_eq!(why, "its user holds nothing (dominant share)");
    run(&mut view, plan);
    view.pending = [of("A", job(4, gpus(2))), of("B", job(5, gpus(3)))].map(|job| (job.id, job)).into();
    let mut policy = policy();
    policy.learn(&view, &view.as_changes());
    let reasons = policy.explain_pending(&view);
    let why: Vec<&str> = reasons.iter().map(|it| it.why.as_str()).collect();
    assert_eq!(
        why,
        [
            "needs 3 free GPUs on one node; the best node has 0 free. First in the queue. User B holds 25% of \
             the GPUs (dominant share); users with a smaller one go first",
            "needs 2 free GPUs on one node; the best node has 0 free. 1 job is ahead in the queue. User A \
             holds 88% of the CPU cores (dominant share); users with a smaller one go first",
        ]
    );
    assert_eq!(reasons[0].code, ReasonCode::WaitingForDevices);
}

/// A fraction, compared exactly.
type Fraction = (u128, u128);

fn is_smaller(one: Fraction, other: Fraction) -> bool {
    one.0 * other.1 < other.0 * one.1
}

/// What each user holds: thousandths of devices, cores, bytes.
type Held = BTreeMap<String, [u128; 3]>;

fn add(held: &mut Held, job: &PendingJob, placement: &Placement) {
    let sum = held.entry(job.traits.user.clone()).or_default();
    for part in &placement.parts {
        sum[0] += u128::from(part.share.0) * part.devices.len() as u128;
        sum[1] += u128::from(job.demand.cpus);
        sum[2] += u128::from(job.demand.memory.0);
    }
}

fn dominant(held: &Held, user: &str, nodes: &[NodeView]) -> Fraction {
    let whole = nodes.iter().fold([0; 3], |sum: [u128; 3], node| {
        let devices = 1_000 * node.devices.len() as u128;
        [sum[0] + devices, sum[1] + u128::from(node.cpus), sum[2] + u128::from(node.memory.0)]
    });
    let shares = held.get(user).copied().unwrap_or_default().into_iter().zip(whole);
    shares.filter(|it| it.1 > 0).fold((0, 1), |most, it| if is_smaller(most, it) { it } else { most })
}

fn demands() -> impl Strategy<Value = Demand> {
    let gpus = prop_oneof![
        (1_u32..1_000).prop_map(part),
        (0_u32..4).prop_map(gpus),
        (1_u32..6).prop_map(anywhere),
        (1_u32..3).prop_map(|count| Demand { nodes: 2, ..gpus(count) }),
    ];
    (gpus, 0_u32..6, 0_u64..40).prop_map(|(demand, cpus, gib)| Demand {
        cpus,
        memory: Bytes(gib << 30),
        ..demand
    })
}

fn waves() -> impl Strategy<Value = (Vec<NodeView>, Vec<Vec<PendingJob>>)> {
    let nodes = prop::collection::vec(0_usize..5, 1..5).prop_map(|sizes| {
        (1..).zip(sizes).map(|(number, size)| node(number, &vec![1_000; size])).collect::<Vec<_>>()
    });
    let drawn = (demands(), 0_usize..4, prop_oneof![4 => Just(0), 1 => Just(1)]);
    let waves = prop::collection::vec(prop::collection::vec(drawn, 0..8), 1..4);
    (nodes, waves).prop_map(|(nodes, waves)| {
        let mut numbers = 1..;
        let mut made = |(demand, user, priority): (Demand, usize, i32)| {
            let user = ["ada", "bea", "cyd", "dan"][user];
            PendingJob { priority, ..of(user, job(numbers.next().unwrap_or_default(), demand)) }
        };
        let waves = waves.into_iter().map(|wave| wave.into_iter().map(&mut made).collect()).collect();
        (nodes, waves)
    })
}

fn fits_now(job: &PendingJob, free: &FreeNodes<'_>) -> bool {
    FirstFit.place(job, &Profile::flat(&job.demand, &job.traits), free).is_ok()
}

/// Checks each start of a plan against the definition, and that nothing is left that fits.
fn check(view: &View, plan: &Plan, held: &mut Held) -> Result<(), TestCaseError> {
    let mut free = FreeNodes::new(&view.nodes);
    let mut waiting = view.pending.clone();
    for action in &plan.actions {
        let Action::Place { job, placement, .. } = action else { panic!("no job is stopped") };
        let started = waiting.remove(job).expect("it waits");
        prop_assert_eq!(fits(&free, &started.demand, placement), Ok(()));
        let share = dominant(held, &started.traits.user, &view.nodes);
        for other in waiting.values().filter(|it| fits_now(it, &free)) {
            prop_assert!(other.priority <= started.priority);
            if other.priority < started.priority {
                continue;
            }
            prop_assert!(!is_smaller(dominant(held, &other.traits.user, &view.nodes), share));
            prop_assert!(other.traits.user != started.traits.user || other.id > started.id);
        }
        free.take(&started.demand, placement);
        add(held, &started, placement);
    }
    prop_assert!(waiting.values().all(|job| !fits_now(job, &free)));
    Ok(())
}

proptest! {
    #[test]
    fn the_user_with_the_smallest_dominant_share_goes_first((nodes, waves) in waves()) {
        let (mut view, mut held, mut policy) = (view(nodes, vec![]), Held::new(), policy());
        let mut changes = view.as_changes();
        for wave in waves {
            changes.extend(wave.iter().cloned().map(ViewChange::Pending));
            view.pending.extend(wave.into_iter().map(|job| (job.id, job)));
            policy.learn(&view, &changes);
            let plan = policy.plan(&view);
            prop_assert_eq!(&plan, &plan_of(&view), "it depends on the view alone");
            check(&view, &plan, &mut held)?;
            run(&mut view, plan);
            let running = view.running.values().cloned().map(ViewChange::Running);
            changes = running.chain(view.nodes.iter().cloned().map(ViewChange::Node)).collect();
        }
    }
}
