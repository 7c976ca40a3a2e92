//! What A-SRPT does with a few jobs: turns, waiting for better placements, barriers, priorities, jobs that
//! come back, and the sentences that people read.
//!
//! Estimates are wrong on purpose where a job has to hold its devices for longer than its turn took.

use cohabit_types::{Demand, JobId, ModelDescription, ReasonCode, Span, Time};

use super::instances::{nodes, place, replicated, spread};
use crate::a_srpt::{ASrpt, ASrptOptions};
use crate::tests::cluster::{Ran, TestCluster, TestJob, run};
use crate::tests::kit::{anywhere, gpus, node, placed};
use crate::{FirstFit, FreeNodes, NodeView, PendingJob, PendingReason, Plan, Policy, View, ViewChange};

fn options(pairs: &[(&str, &str)]) -> ASrptOptions {
    let mut options = ASrptOptions::default();
    pairs.iter().for_each(|(key, value)| options.set(key, value).unwrap());
    options
}

/// A job that is estimated to end at once, and holds its devices for so many seconds.
fn holder(number: u64, devices: u32, seconds: u64) -> TestJob {
    TestJob::new(number, 0.0, anywhere(devices), seconds).expected(1)
}

/// Two devices for 10.04 s on one node, 1.63 times as long on two. Its turn comes 2.51 s after its arrival.
fn talkative(number: u64, arrives_at: f64) -> TestJob {
    let model = ModelDescription { stages: replicated(2, 0.1, 2e7), ..ModelDescription::default() };
    TestJob::new(number, arrives_at, anywhere(2), 100).training(model)
}

/// Two nodes of four devices, three of which are held from the first second on, on the second node for about
/// `seconds`; and a job that wants two devices.
fn crowded(seconds: u64, switches: &[(&str, &str)]) -> Vec<Ran> {
    let jobs = vec![holder(1, 3, 100), holder(2, 3, seconds), talkative(3, 2.0), holder(4, 1, 1)];
    ran_on(nodes(2, 4), jobs, switches)
}

fn ran_on(nodes: Vec<NodeView>, jobs: Vec<TestJob>, switches: &[(&str, &str)]) -> Vec<Ran> {
    let mut cluster = TestCluster::new(nodes, jobs, Box::new(place()));
    let mut ran = cluster.run(&mut ASrpt::new(&options(switches), place()));
    ran.sort_by_key(|it| it.job);
    ran
}

fn starts(ran: &[Ran]) -> Vec<f64> {
    ran.iter().map(|it| it.started_at.as_secs_f64()).collect()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-3
}

#[test]
fn a_job_waits_until_a_better_placement_is_free() {
    let ran = crowded(7, &[]);
    assert!(ran[2].started_at == ran[1].ended_at && ran[2].started_at > Time::from_micros(4_510_000));
    assert_eq!((spread(&ran[2].placement), ran[2].slowdown), (1, 1.0));
}

#[test]
fn it_waits_no_longer_than_the_slower_placement_would_cost() {
    let ran = crowded(50, &[]);
    let (turn, price) = (4.51, 0.064 * 100.0 - 0.0004 * 100.0);
    assert!(near(ran[2].started_at.as_secs_f64(), turn + price), "{:?}", ran[2]);
    assert_eq!(spread(&ran[2].placement), 2);
}

#[test]
fn it_waits_no_longer_than_its_allowance_or_the_fixed_time() {
    let started = |switches: &[(&str, &str)]| crowded(50, switches)[2].started_at.as_secs_f64();
    assert!(near(started(&[("delta", "0.1")]), 4.51 + 1.004));
    assert!(near(started(&[("tau", "3")]), 4.51 + 3.0));
    assert!(near(started(&[("delta", "0")]), 4.51));
}

#[test]
fn a_job_that_is_not_sensitive_takes_any_placement() {
    assert!(near(crowded(50, &[("theta", "1.7")])[2].started_at.as_secs_f64(), 4.51));
}

#[test]
fn a_delayed_job_blocks_no_other() {
    for queue in ["greedy", "strict"] {
        let mut jobs = vec![holder(1, 3, 100), holder(2, 3, 50), talkative(3, 2.0)];
        jobs.push(TestJob::new(4, 5.0, anywhere(1), 1));
        let ran = ran_on(nodes(2, 4), jobs, &[("queue", queue)]);
        assert!(near(ran[3].started_at.as_secs_f64(), 5.125), "{queue}: {:?}", ran[3]);
        assert!(ran[3].started_at < ran[2].started_at);
    }
}

#[test]
fn a_larger_priority_goes_before_an_earlier_turn() {
    let urgent = |mut job: TestJob| {
        job.pending.priority = 1;
        job
    };
    let jobs =
        vec![holder(1, 1, 10), TestJob::new(2, 1.0, gpus(1), 2), urgent(TestJob::new(3, 2.0, gpus(1), 3))];
    let ran = ran_on(nodes(1, 1), jobs, &[]);
    assert_eq!(starts(&ran), [1.0, 14.0, 11.0]);
}

#[test]
fn a_job_that_the_nodes_could_never_hold_blocks_no_other() {
    let jobs = vec![TestJob::new(1, 0.0, gpus(2), 1), TestJob::new(2, 0.0, gpus(1), 5)];
    let ran = ran_on(nodes(2, 1), jobs, &[("queue", "strict")]);
    assert_eq!(ran.iter().map(|it| it.job.number).collect::<Vec<_>>(), [2]);
}

/// When a job starts that wants both devices, beside a stream of small ones that always leaves it one.
fn stream(barrier: &str) -> f64 {
    let mut jobs = vec![TestJob::new(1, 0.0, anywhere(2), 2)];
    jobs.extend((0..60).map(|turn| TestJob::new(turn + 2, turn as f64 * 0.9, anywhere(1), 2).expected(1)));
    let ran = ran_on(nodes(1, 2), jobs, &[("order", "turn"), ("starvation-barrier", barrier)]).remove(0);
    ran.started_at.as_secs_f64()
}

#[test]
fn no_job_passes_a_starving_job_with_the_block_barrier() {
    assert!(stream("off") > 50.0, "{}", stream("off"));
    assert!(stream("block") < 20.0, "{}", stream("block"));
}

#[test]
fn a_starving_job_gets_a_reservation_and_jobs_that_end_before_it_pass() {
    let with_barrier = |barrier| {
        // The second job holds a device for long, the third wants both and is passed, the others are short
        // or long.
        let jobs = vec![
            holder(1, 1, 60),
            TestJob::new(2, 1.0, anywhere(2), 4),
            TestJob::new(3, 40.0, anywhere(1), 2),
            TestJob::new(4, 41.0, anywhere(1), 20),
        ];
        starts(&ran_on(nodes(1, 2), jobs, &[("order", "turn"), ("starvation-barrier", barrier)]))
    };
    let (passed, reserved, blocked) = (with_barrier("off"), with_barrier("reserve"), with_barrier("block"));
    assert!(passed[1] > 70.0, "the long one passes it: {passed:?}");
    assert_eq!(reserved[1], 60.5, "{reserved:?}");
    assert!(reserved[2] < 45.0 && reserved[3] >= 64.0, "only the short one passes: {reserved:?}");
    assert!(blocked[1] == 60.5 && blocked[2] >= 64.0, "nobody passes: {blocked:?}");
}

#[test]
fn an_idle_cluster_waits_for_the_virtual_turn_by_default() {
    let start = |eager| {
        let jobs = vec![TestJob::new(1, 0.0, anywhere(1), 8), TestJob::new(2, 0.0, anywhere(4), 4)];
        starts(&ran_on(nodes(1, 4), jobs, &[("eager-start", eager)]))
    };
    assert_eq!((start("off"), start("on")), (vec![2.0, 10.0], vec![0.0, 8.0]));
}

#[test]
fn jobs_that_start_early_are_ordered_by_the_work_left_on_the_virtual_machine() {
    // When the first device becomes free, the second job has 21 s left of its 40, and the third all its 25.
    let jobs = vec![
        holder(1, 1, 20),
        TestJob::new(2, 0.0, anywhere(1), 5).expected(40),
        TestJob::new(3, 18.0, anywhere(1), 25),
    ];
    assert_eq!(starts(&ran_on(nodes(1, 1), jobs, &[("eager-start", "on")])), [0.0, 20.0, 25.0]);
}

#[test]
fn before_its_turn_a_job_takes_only_the_best_placement() {
    let jobs = vec![holder(1, 3, 100), holder(2, 3, 50), talkative(3, 2.0)];
    let ran = ran_on(nodes(2, 4), jobs, &[("eager-start", "on"), ("delta", "0")]);
    assert!(near(ran[2].started_at.as_secs_f64(), 4.51), "{:?}", ran[2]);
}

#[test]
fn without_the_virtual_machine_the_shortest_job_starts_at_once() {
    let jobs = vec![
        TestJob::new(1, 0.0, gpus(1), 5),
        TestJob::new(2, 1.0, gpus(1), 4),
        TestJob::new(3, 2.0, gpus(1), 3),
    ];
    let ran = run(
        &mut ASrpt::new(&options(&[("virtual-machine", "off")]), FirstFit),
        vec![node(1, &[1_000])],
        jobs,
    );
    assert_eq!(ran.iter().map(|it| it.job.number).collect::<Vec<_>>(), [1, 3, 2]);
    assert_eq!(ran[0].started_at, Time::EPOCH);
}

/// A policy that is told changes by hand.
struct Hand {
    policy: ASrpt<FirstFit>,
    view: View,
}

impl Hand {
    fn new(nodes: Vec<NodeView>) -> Hand {
        let mut hand = Hand { policy: ASrpt::new(&ASrptOptions::default(), FirstFit), view: View::default() };
        hand.tell(0.0, &nodes.into_iter().map(ViewChange::Node).collect::<Vec<_>>());
        hand
    }

    fn tell(&mut self, seconds: f64, changes: &[ViewChange]) -> Plan {
        self.view.now = Time::EPOCH + Span::from_secs_f64(seconds);
        self.view.apply(changes);
        self.policy.learn(&self.view, changes);
        self.policy.plan(&self.view)
    }

    fn explain_pending(&mut self) -> Vec<(u64, ReasonCode, String)> {
        let words = |it: PendingReason| (it.job.number, it.code, it.why);
        self.policy.explain_pending(&self.view).into_iter().map(words).collect()
    }
}

fn pending(number: u64, arrives_at: f64, demand: Demand, seconds: u64) -> PendingJob {
    TestJob::new(number, arrives_at, demand, seconds).pending
}

fn running(job: &PendingJob, at: f64) -> ViewChange {
    let free = [node(9, &[1_000; 8])];
    let placement = crate::Placer::place(
        &mut FirstFit,
        job,
        &crate::Profile::flat(&job.demand, &job.traits),
        &FreeNodes::new(&free),
    );
    let started_at = Time::EPOCH + Span::from_secs_f64(at);
    ViewChange::Running(job.clone().placed(placement.unwrap().placement, started_at))
}

#[test]
fn a_job_that_loses_its_devices_keeps_its_turn() {
    let mut hand = Hand::new(vec![node(1, &[1_000])]);
    let (first, second) = (pending(1, 0.0, gpus(1), 5), pending(2, 1.0, gpus(1), 10));
    hand.tell(1.0, &[ViewChange::Pending(first.clone()), ViewChange::Pending(second)]);
    hand.tell(5.0, &[running(&first, 5.0), ViewChange::Node(node(1, &[0]))]);
    assert_eq!(placed(&hand.tell(16.0, &[])), [0_u64; 0]);
    let back = PendingJob { eligible_at: Time::from_micros(20_000_000), ..first };
    assert_eq!(
        placed(&hand.tell(20.0, &[ViewChange::Pending(back), ViewChange::Node(node(1, &[1_000]))])),
        [1]
    );
}

#[test]
fn a_new_policy_lets_a_job_that_already_ran_go_first() {
    let mut hand = Hand::new(vec![]);
    let (first, second) = (pending(1, 0.0, gpus(1), 5), pending(2, 1.0, gpus(1), 10));
    let free = ViewChange::Node(node(1, &[1_000]));
    hand.tell(60.0, &[running(&first, 5.0), ViewChange::Node(node(1, &[0])), ViewChange::Pending(second)]);
    assert_eq!(placed(&hand.tell(70.0, &[ViewChange::Pending(first), free])), [1]);
}

#[test]
fn a_new_policy_finds_turns_that_came_before_it_existed() {
    let mut hand = Hand::new(vec![]);
    let jobs = [pending(1, 0.0, gpus(1), 50), pending(2, 1.0, gpus(1), 10), pending(3, 70.0, gpus(1), 10)];
    hand.view.now = Time::from_micros(75_000_000);
    hand.view.nodes = vec![node(1, &[1_000])];
    hand.view.pending = jobs.iter().map(|job| (job.id, job.clone())).collect();
    let all = hand.view.as_changes();
    assert_eq!(placed(&hand.tell(75.0, &all)), [2]);
    let turns: Vec<_> = (1..=3).map(|job| hand.policy.turn_at(JobId::new(job))).collect();
    assert_eq!(turns, [Some(Time::from_micros(60_000_000)), Some(Time::from_micros(11_000_000)), None]);
}

#[test]
fn a_cancelled_job_leaves_its_virtual_time_to_the_others() {
    let mut hand = Hand::new(vec![node(1, &[1_000])]);
    let jobs = [pending(1, 0.0, gpus(1), 5), pending(2, 0.0, gpus(1), 10)];
    let plan = hand.tell(0.0, &jobs.map(ViewChange::Pending));
    assert_eq!(plan.wake, Some(Time::from_micros(5_000_000)));
    let plan = hand.tell(2.0, &[ViewChange::Gone(JobId::new(1))]);
    assert_eq!(plan.wake, Some(Time::from_micros(12_000_000)));
    let plan = hand.tell(12.0, &[]);
    assert_eq!((placed(&plan), plan.wake), (vec![2], None));
    let plan = hand.tell(13.0, &[ViewChange::Gone(JobId::new(2))]);
    assert_eq!((plan, hand.explain_pending()), (Plan::default(), vec![]));
}

#[test]
fn more_nodes_bring_turns_nearer_from_then_on() {
    let mut hand = Hand::new(vec![node(1, &[1_000])]);
    let plan = hand.tell(0.0, &[ViewChange::Pending(pending(1, 0.0, gpus(1), 8))]);
    assert_eq!(plan.wake, Some(Time::from_micros(8_000_000)));
    let plan = hand.tell(2.0, &[ViewChange::Node(node(2, &[1_000, 0]))]);
    assert_eq!(plan.wake, Some(Time::from_micros(4_000_000)));
    let gone = [node(1, &[]).id, node(2, &[]).id].map(ViewChange::NodeGone);
    assert_eq!(hand.tell(3.0, &gone).wake, None);
    assert!(hand.explain_pending()[0].2.ends_with("its turn comes once a worker accepts jobs"));
}

#[test]
fn reasons_say_what_a_job_waits_for_and_how_long() {
    let mut hand = Hand::new(vec![node(1, &[0, 1_000])]);
    let jobs = [pending(1, 0.0, gpus(2), 4), pending(2, 0.0, gpus(1), 60), pending(3, 0.0, gpus(1), 90)];
    hand.tell(0.0, &jobs.map(ViewChange::Pending));
    hand.tell(10.0, &[]);
    assert_eq!(
        hand.explain_pending(),
        [
            (
                1,
                ReasonCode::WaitingForDevices,
                "needs 2 free GPUs on one node; the best node has 1 free. First in the queue".into()
            ),
            (
                2,
                ReasonCode::WaitingForVirtualTurn,
                "waits for its virtual turn: it has 48 s of GPU time left on the virtual machine, and no job is \
                 ahead; its turn comes in 24 s if no smaller job arrives"
                    .into()
            ),
            (
                3,
                ReasonCode::WaitingForVirtualTurn,
                "waits for its virtual turn: it has 1 min 30 s of GPU time left on the virtual machine, and \
                 1 job with less time left is ahead; its turn comes in 1 min 9 s if no smaller job arrives"
                    .into()
            ),
        ]
    );
}

#[test]
fn the_reason_of_a_delay_says_why_and_until_when() {
    let mut nodes = nodes(2, 4);
    for node in &mut nodes {
        node.devices.iter_mut().skip(1).for_each(|device| device.free = cohabit_types::Share(0));
    }
    let mut policy = ASrpt::new(&ASrptOptions::default(), place());
    let job = talkative(1, 0.0).pending;
    let mut view = View { nodes, ..crate::tests::kit::view(vec![], vec![job]) };
    view.now = Time::from_micros(3_000_000);
    policy.learn(&view, &view.as_changes());
    let plan = policy.plan(&view);
    assert!(plan.actions.is_empty());
    let reason = policy.explain_pending(&view).remove(0);
    assert_eq!(reason.not_before, plan.wake);
    assert_eq!(
        (reason.code, reason.why.as_str()),
        (
            ReasonCode::WaitingForDevices,
            "waits for a faster placement: an iteration would now take 1.63 times as long as in the best one. Starts anyway in \
             5.9 s"
        )
    );
}
