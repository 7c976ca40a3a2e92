//! Promised turns: when jobs are due, who goes first then, and what a new policy knows of it.

use cohabit_types::{Demand, JobId, Span, Time};
use proptest::prelude::*;

use super::super::promised_turns::PromisedTurns;
use super::kit::{job, named, nodes, of, policy, preemptible};
use super::scenarios::times;
use crate::a_srpt::VirtualAlpha;
use crate::a_srpt::tests::instances::{Instance, Shape, place};
use crate::gittins::{GittinsOrder, OrderOptions};
use crate::tests::cluster::{Ran, TestCluster, TestJob, run};
use crate::tests::kit::{anywhere, gpus, part};
use crate::{FirstFit, MappedPlacer, NodeView, Policy, View, ViewChange, parse_policy};

fn at(seconds: f64) -> Time {
    Time::EPOCH + Span::from_secs_f64(seconds)
}

fn order(factor: f64) -> GittinsOrder<MappedPlacer> {
    let mut options = OrderOptions::default();
    options.set("promise", "turn").unwrap();
    options.set("promise-factor", &factor.to_string()).unwrap();
    GittinsOrder::new(options, place())
}

/// Jobs that take an hour by their profile: nothing is known of them.
fn hours(numbers: std::ops::Range<u64>, demand: Demand, seconds: u64) -> Vec<TestJob> {
    numbers.map(|number| job(number, number as f64, demand, seconds)).collect()
}

#[test]
fn jobs_are_due_a_factor_later_than_their_virtual_turns() {
    let shape = Shape { nodes: 2, devices: 4, jobs: 40, error: 0.8 };
    for seed in 0..20 {
        let instance = Instance::draw(shape, seed);
        let profiles = instance.profiles(&mut place());
        let turns = instance.turns(&profiles, VirtualAlpha::LowerBound);
        let mut order = order(2.5);
        let mut view = View { nodes: instance.nodes.clone(), ..View::default() };
        order.learn(&view, &view.as_changes());
        let mut learn = |now: Time, changes: &[ViewChange]| {
            view.now = now;
            view.apply(changes);
            order.learn(&view, changes);
        };
        // What happened is learned of in turn, or three jobs at a time.
        for jobs in instance.jobs.chunks(1 + 2 * (seed as usize % 2)) {
            let arrive = |job: &TestJob| ViewChange::Pending(job.pending.clone());
            let changes: Vec<ViewChange> = jobs.iter().rev().map(arrive).collect();
            learn(jobs.last().unwrap().pending.eligible_at, &changes);
        }
        learn(turns.iter().copied().max().unwrap(), &[]);
        for (job, turn) in instance.jobs.iter().zip(turns) {
            let (arrived, turn) = (job.pending.eligible_at.as_secs_f64(), turn.as_secs_f64());
            let due = order.due_at(job.pending.id).unwrap().as_secs_f64();
            assert!((due - arrived - 2.5 * (turn - arrived)).abs() < 1e-3, "seed {seed}: {due}");
        }
    }
}

/// A policy that begins in the middle of an instance, in which no job has ended.
fn restarted(instance: &Instance, nodes_join: &[f64]) -> (GittinsOrder<MappedPlacer>, View) {
    let mut view = View { now: at(100_000.0), ..View::default() };
    let mut order = order(4.0);
    let pending = instance.jobs.iter().map(|job| (job.pending.id, job.pending.clone()));
    view.pending = pending.collect();
    if nodes_join.is_empty() {
        view.nodes.clone_from(&instance.nodes);
    }
    order.learn(&view, &view.as_changes());
    for (node, seconds) in instance.nodes.iter().zip(nodes_join) {
        view.now = at(100_000.0 + seconds);
        let change = [ViewChange::Node(node.clone())];
        view.apply(&change);
        order.learn(&view, &change);
    }
    view.now = at(100_500.0);
    order.learn(&view, &[]);
    (order, view)
}

#[test]
fn a_new_policy_finds_the_same_due_times_even_if_nodes_join_one_by_one() {
    let shape = Shape { nodes: 3, devices: 2, jobs: 30, error: 0.8 };
    for seed in 0..20 {
        let instance = Instance::draw(shape, seed);
        let (at_once, _) = restarted(&instance, &[]);
        let (one_by_one, _) = restarted(&instance, &[5.0, 20.0, 50.0]);
        let turns = instance.turns(&instance.profiles(&mut place()), VirtualAlpha::LowerBound);
        for (job, turn) in instance.jobs.iter().zip(turns) {
            let virtually = turn.since(job.pending.eligible_at).as_secs_f64();
            let due_at = job.pending.eligible_at + Span::from_secs_f64(4.0 * virtually);
            assert_eq!(at_once.due_at(job.pending.id), Some(due_at), "seed {seed}");
            assert_eq!(one_by_one.due_at(job.pending.id), Some(due_at), "seed {seed}");
        }
    }
}

#[test]
fn a_new_policy_knows_who_is_in_the_lane() {
    let mut view = View { now: at(50_000.0), nodes: nodes(1, 4), ..View::default() };
    // Four jobs run that are due; only two of them have a place in the lane.
    for job in hours(1..5, gpus(1), 1) {
        let part = view.nodes[0].part(&job.pending.demand, view.nodes[0].first_devices(&gpus(1), 1));
        let change = job.pending.placed(cohabit_types::Placement { parts: vec![part] }, at(10.0));
        view.apply(&[ViewChange::Running(change)]);
    }
    view.nodes = nodes(1, 4);
    let mut options = OrderOptions::default();
    options.set("promise", "turn").unwrap();
    options.set("lane", "0.5").unwrap();
    let mut order = GittinsOrder::new(options, FirstFit);
    order.learn(&view, &view.as_changes());
    order.plan(&view);
    assert!(!order.is_in_lane(JobId::new(1)), "more nodes may join");
    view.now = at(50_061.0);
    order.plan(&view);
    let in_lane = |number| order.is_in_lane(JobId::new(number));
    assert_eq!([1, 2, 3, 4].map(in_lane), [true, true, false, false]);
}

/// A long job behind many short ones that are always more urgent.
fn starving() -> Vec<TestJob> {
    let mut jobs = vec![named(job(1, 0.0, gpus(1), 5_000), "long")];
    jobs.push(named(job(2, 10.0, gpus(1), 5_000), "long"));
    jobs.extend((3..400).map(|number| named(job(number, number as f64 * 90.0, gpus(1), 100), "short")));
    jobs
}

#[test]
fn a_job_starts_when_its_promised_turn_has_come_and_says_so() {
    let starved = run(policy("a-srpt:lane=0").as_mut(), nodes(1, 1), starving());
    let served = run(policy("a-srpt:promise=turn,promise-factor=1").as_mut(), nodes(1, 1), starving());
    // By their profiles jobs take an hour each, so the second is due two hours after the first came.
    assert!((7_200..7_400).contains(&times(&served, 2).0), "{:?}", times(&served, 2));
    assert!(times(&starved, 2).0 > 2 * times(&served, 2).0);
    let why = &of(&served, 2).why;
    assert!(why.starts_with("its promised turn ") && why.contains("after its submission"), "{why}");
}

#[test]
fn a_larger_factor_promises_a_later_turn() {
    let start = |text: &str| times(&run(policy(text).as_mut(), nodes(1, 1), starving()), 2).0;
    let second = start("a-srpt:promise=turn,promise-factor=2");
    assert!((14_300..14_600).contains(&second), "{second}");
}

#[test]
fn no_later_job_passes_one_of_the_lane_that_finds_no_room() {
    // Two devices that a job each holds for ever; a gang of two, then single jobs, all due.
    let mut jobs = vec![job(1, 0.0, gpus(1), 20_000), job(2, 0.0, gpus(1), 30_000)];
    jobs.push(job(3, 1.0, anywhere(2), 100).expected(100));
    jobs.extend(hours(4..8, gpus(1), 50_000));
    let ran = run(policy("a-srpt:promise=turn,promise-factor=1,lane=1").as_mut(), nodes(1, 2), jobs.clone());
    let started: Vec<u64> = (3..8).map(|number| times(&ran, number).0).collect();
    assert!(started[0] == 30_000 && started[1..].iter().all(|it| *it >= 30_100), "{started:?}");
    let other = run(policy("a-srpt:lane=0").as_mut(), nodes(1, 2), jobs);
    assert!(times(&other, 3).0 > 30_000, "without the promise the single jobs pass");
}

#[test]
fn a_job_of_the_lane_is_not_stopped() {
    let mut jobs = vec![preemptible(job(1, 0.0, gpus(1), 40_000))];
    jobs.extend((2..12).map(|number| preemptible(job(number, number as f64 * 3_000.0, gpus(1), 100))));
    let attempts = |text: &str| times(&run(policy(text).as_mut(), nodes(1, 1), jobs.clone()), 1).2;
    assert!(attempts("a-srpt") > 5);
    // After an hour it is due, and joins the lane as it runs.
    assert_eq!(attempts("a-srpt:promise=turn,promise-factor=1"), 1);
}

#[test]
fn a_job_that_no_node_can_hold_is_in_nobodys_way() {
    let mut jobs = starving();
    jobs.push(job(1_000, 0.0, gpus(2), 10));
    let ran = run(policy("a-srpt:promise=turn,promise-factor=1").as_mut(), nodes(1, 1), jobs);
    assert!((7_200..11_000).contains(&times(&ran, 2).0), "{:?}", times(&ran, 2));
    assert!(ran.iter().all(|it| it.job != JobId::new(1_000)));
}

#[test]
fn what_is_promised_to_a_waiting_job_is_explained() {
    let waiting = |now: f64| {
        let jobs = hours(1..3, gpus(1), 1);
        let pending = jobs.into_iter().map(|it| (it.pending.id, it.pending)).collect();
        let full: Vec<NodeView> = vec![crate::tests::kit::node(1, &[0])];
        let mut view = View { now: at(now - 100.0), nodes: full, pending, ..View::default() };
        let mut policy = policy("a-srpt:promise=turn");
        policy.learn(&view, &view.as_changes());
        view.now += Span::from_secs(100);
        policy.explain_pending(&view).into_iter().map(|it| it.why).collect::<Vec<_>>().join("\n")
    };
    assert!(!waiting(3_000.0).contains("promised turn"), "no virtual turn has come yet");
    assert!(waiting(4_000.0).contains("Its promised turn comes in 2 h 53 min"), "{}", waiting(4_000.0));
    assert!(waiting(15_000.0).contains("Its promised turn came 9 min 59 s ago"), "{}", waiting(15_000.0));
}

#[test]
fn nothing_is_kept_of_jobs_that_are_gone() {
    let instance = Instance::draw(Shape { nodes: 2, devices: 4, jobs: 200, error: 0.5 }, 7);
    for now in [0.0, 500.0, 5_000.0] {
        let (mut order, mut view) = restarted(&instance, &[]);
        view.now = at(now).max(view.now);
        let gone: Vec<ViewChange> = view.pending.keys().map(|job| ViewChange::Gone(*job)).collect();
        view.apply(&gone);
        order.learn(&view, &gone);
        assert!(order.promised().is_some_and(PromisedTurns::is_empty));
    }
}

#[test]
fn what_is_wrong_with_a_promise_is_said() {
    let refusal = |text: &str| parse_policy(text).err().map(|why| why.to_string()).unwrap_or_default();
    for (text, needle) in [
        ("a-srpt:promise=turn,promise-factor=1", ""),
        ("hybrid:promise=turn,promise-factor=4.5", ""),
        ("a-srpt:promise=patience", ""),
        ("a-srpt:promise=never", "promise is 'never': use patience or turn"),
        ("a-srpt:promise-factor=0.5", "promise-factor is '0.5': use a number from 1 to 1000000"),
        ("a-srpt:promise-factor=nan", "promise-factor is 'nan': use a number from 1 to 1000000"),
        ("hybrid:promise-factor=inf", "promise-factor is 'inf': use a number from 1 to 1000000"),
    ] {
        let why = refusal(text);
        assert!(why.contains(needle) && why.is_empty() == needle.is_empty(), "{text}: {why}");
    }
}

#[test]
fn without_a_promise_nothing_changes() {
    let timeline = |text: &str| -> Vec<(JobId, Time, Time, String)> {
        let ran: Vec<Ran> = run(policy(text).as_mut(), nodes(1, 2), starving());
        ran.into_iter().map(|it| (it.job, it.started_at, it.ended_at, it.why)).collect()
    };
    assert_eq!(timeline("a-srpt"), timeline("a-srpt:promise=patience,promise-factor=1"));
}

/// One device, several on one node, several anywhere, or a part of one.
fn demand(kind: u32) -> Demand {
    match kind {
        0 => part(400),
        kind @ 1..=2 => gpus(kind),
        kind => anywhere(kind),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_job_ends_and_none_that_did_not_agree_is_stopped(
        jobs in prop::collection::vec((0_u64..8_000, 0_u32..5, 1_u64..5_000, any::<bool>(), 0_i32..2), 1..20),
        name in prop::sample::select(vec!["a-srpt", "hybrid", "a-srpt:preempt=off"]),
        lane in prop::sample::select(vec!["0", "0.3", "1"]),
    ) {
        let drawn = jobs.into_iter().enumerate();
        let jobs: Vec<TestJob> = drawn.map(|(at, (arrives, kind, seconds, may_stop, priority))| {
            let mut it = job(at as u64 + 1, arrives as f64, demand(kind), seconds).expected(600);
            it.pending.priority = priority;
            if may_stop { preemptible(it) } else { it }
        }).collect();
        let agreed: Vec<bool> = jobs.iter().map(|it| it.pending.traits.preemptible).collect();
        let mut cluster = TestCluster::new(nodes(2, 2), jobs, Box::new(FirstFit));
        cluster.stopping_takes = Span::from_secs(5);
        let first = if name.contains(':') { ',' } else { ':' };
        let text = format!("{name}{first}promise=turn,promise-factor=1,lane={lane}");
        let ran = cluster.run(policy(&text).as_mut());
        prop_assert_eq!(ran.len(), agreed.len());
        for it in ran {
            prop_assert!(agreed[it.job.number as usize - 1] || it.attempts == 1);
        }
    }
}
