//! What the baselines promise: which job goes first, which one is stopped for which, and that none is
//! stopped without end.

use std::collections::BTreeMap;

use cohabit_types::{JobId, Placement, RankPlacement, Share, Span, Time};
use proptest::prelude::*;

use super::{AttainedService, LeastAttained, Urgency};
use crate::tests::cluster::{Ran, TestCluster, TestJob, run};
use crate::tests::kit::{anywhere, gpus, node, part, view};
use crate::{Action, FirstFit, POLICY_NAMES, Plan, Policy, Profile, ViewChange, parse_policy};

fn policy(text: &str) -> Box<dyn Policy> {
    parse_policy(text).unwrap()
}

/// The start, the end (both in seconds) and the number of attempts of each job.
fn outcomes(ran: &[Ran]) -> BTreeMap<u64, (u64, u64, u32)> {
    let fate = |it: &Ran| {
        let seconds = |at: Time| at.as_micros() / 1_000_000;
        (it.job.number, (seconds(it.started_at), seconds(it.ended_at), it.attempts))
    };
    ran.iter().map(fate).collect()
}

fn on(devices: usize, text: &str, jobs: Vec<TestJob>) -> BTreeMap<u64, (u64, u64, u32)> {
    outcomes(&run(policy(text).as_mut(), vec![node(1, &vec![1_000; devices])], jobs))
}

fn urgent(mut job: TestJob) -> TestJob {
    job.pending.priority = 1;
    job
}

/// The first queue ends at 36 seconds of one device, the second at 360.
const LAS: &str = "las:gpu-hours=0.01,factor=10,queues=3,quantum=0";

#[test]
fn the_shortest_and_the_smallest_job_differ() {
    // One job blocks all devices first, so that the order of the others shows.
    let jobs = || {
        vec![
            TestJob::new(1, 0.0, anywhere(4), 10),
            TestJob::new(2, 1.0, anywhere(4), 20),
            TestJob::new(3, 2.0, anywhere(1), 30),
        ]
    };
    let starts = |text| on(4, text, jobs()).into_iter().map(|(job, it)| (job, it.0)).collect::<Vec<_>>();
    for name in ["spd", "spd-strict"] {
        assert_eq!(starts(name), [(1, 0), (2, 10), (3, 30)], "{name}");
    }
    for name in ["spw", "spw-strict"] {
        assert_eq!(starts(name), [(1, 0), (2, 40), (3, 10)], "{name}");
    }
}

#[test]
fn only_a_strict_order_waits_for_the_first_job() {
    let jobs = || {
        vec![
            TestJob::new(1, 0.0, anywhere(3), 100),
            TestJob::new(2, 1.0, anywhere(2), 10),
            TestJob::new(3, 2.0, anywhere(1), 500),
        ]
    };
    for (name, third) in
        [("spd-strict", 100), ("spw-strict", 100), ("spd", 2), ("spw", 2), ("fifo-greedy", 2)]
    {
        assert_eq!(on(4, name, jobs())[&3].0, third, "{name}");
    }
}

/// When a job for one device starts that arrives a second after a long one took this many, all there are.
fn takes_over(name: &str, devices: u32) -> u64 {
    let jobs = vec![TestJob::new(1, 0.0, gpus(devices), 100_000), TestJob::new(2, 1.0, gpus(1), 1)];
    on(devices as usize, name, jobs)[&2].0
}

#[test]
fn tuned_las_ends_its_first_queue_at_ten_minutes_of_one_device() {
    for name in ["las-tuned:quantum=0", "las:gpu-hours=0.166666666667,factor=4,queues=8,quantum=0"] {
        assert_eq!([1, 4].map(|devices| takes_over(name, devices)), [600, 150], "{name}");
    }
    assert_eq!(takes_over("las:quantum=0", 1), 3_600);
}

#[test]
fn tuned_las_has_eight_queues_each_four_times_as_long() {
    let tuned = LeastAttained::TUNED;
    let profile = Profile::flat(&gpus(1), &TestJob::new(1, 0.0, gpus(1), 1).pending.traits);
    let queue = |seconds| {
        let held = Span::from_secs(seconds);
        tuned.measure(&profile, AttainedService { held, ..AttainedService::default() })
    };
    let ends = [600, 2_400, 9_600, 38_400, 153_600, 614_400, 2_457_600];
    for (number, end) in (0..).zip(ends) {
        assert_eq!((queue(end - 1), queue(end)), (number, number + 1));
    }
    assert_eq!(queue(1_000_000_000), 7, "the last queue has no end");
}

#[test]
fn a_job_with_less_service_preempts_one_with_more() {
    let jobs = vec![TestJob::new(1, 0.0, gpus(1), 100), TestJob::new(2, 50.0, gpus(1), 10)];
    assert_eq!(on(1, LAS, jobs), BTreeMap::from([(1, (0, 110, 2)), (2, (50, 60, 1))]));
}

#[test]
fn a_pending_job_is_tried_again_when_the_running_one_is_demoted() {
    let jobs = vec![TestJob::new(1, 0.0, gpus(1), 100), TestJob::new(2, 10.0, gpus(1), 10)];
    assert_eq!(on(1, LAS, jobs), BTreeMap::from([(1, (0, 110, 2)), (2, (36, 46, 1))]));
}

#[test]
fn service_counts_devices_times_time() {
    let jobs = vec![TestJob::new(1, 0.0, gpus(4), 100), TestJob::new(2, 1.0, gpus(1), 10)];
    assert_eq!(on(4, LAS, jobs)[&2].0, 9);
}

#[test]
fn no_job_is_stopped_before_its_quantum_ends() {
    let jobs = vec![TestJob::new(1, 0.0, gpus(1), 100), TestJob::new(2, 40.0, gpus(1), 10)];
    let with_quantum = LAS.replace("quantum=0", "quantum=60");
    assert_eq!(on(1, &with_quantum, jobs)[&2].0, 60);
}

#[test]
fn equally_urgent_jobs_do_not_preempt_each_other() {
    let jobs: Vec<TestJob> = (1..=4).map(|number| TestJob::new(number, 0.0, gpus(1), 1_000)).collect();
    let outcomes = on(1, LAS, jobs);
    // At most once in each of the three queues.
    assert!(outcomes.values().all(|it| it.2 <= 3), "{outcomes:?}");
    assert_eq!(outcomes.values().map(|it| it.1).max(), Some(4_000));
}

#[test]
fn within_a_queue_no_job_is_stopped_for_an_earlier_submission() {
    let jobs = vec![TestJob::new(1, 0.0, gpus(1), 100), TestJob::new(2, 50.0, gpus(1), 200)];
    // At 86 s the second job falls to the queue in which the first one waits.
    assert_eq!(on(1, LAS, jobs), BTreeMap::from([(1, (0, 300, 2)), (2, (50, 250, 1))]));
}

#[test]
fn a_plan_wakes_for_a_demotion_that_puts_the_running_job_behind_the_waiting_one() {
    let one = |number| TestJob::new(number, 0.0, gpus(1), 100);
    let second_after = Time::EPOCH + Span::from_secs(37);
    assert_eq!(plan_for_second(LAS, one(1), one(2)).1.wake, Some(second_after));
    // It must not preempt a job with a higher priority, whatever that has used.
    assert_eq!(plan_for_second(LAS, urgent(one(1)), one(2)).1.wake, None);
}

#[test]
fn a_shorter_job_preempts_a_longer_one_that_later_continues() {
    let jobs = vec![
        TestJob::new(1, 0.0, gpus(1), 100),
        TestJob::new(2, 40.0, gpus(1), 59),
        TestJob::new(3, 50.0, gpus(1), 49),
    ];
    // At 50 s the second job has 49 s left too: it was there first.
    let outcomes = on(1, "srtf-oracle", jobs);
    assert_eq!(outcomes, BTreeMap::from([(1, (0, 208, 2)), (2, (40, 99, 1)), (3, (99, 148, 1))]));
}

#[test]
fn no_more_jobs_are_stopped_than_necessary() {
    // The least urgent job would free one device, but two are wanted.
    let jobs = vec![
        TestJob::new(1, 0.0, anywhere(1), 1_000),
        TestJob::new(2, 0.0, anywhere(2), 900),
        TestJob::new(3, 0.0, anywhere(1), 800),
        TestJob::new(4, 1.0, anywhere(2), 10),
    ];
    let attempts =
        |outcomes: BTreeMap<u64, (u64, u64, u32)>| outcomes.into_values().map(|it| it.2).collect::<Vec<_>>();
    assert_eq!(attempts(on(4, "srtf-oracle", jobs)), [1, 2, 1, 1]);
}

#[test]
fn no_job_is_stopped_where_that_does_not_help() {
    let jobs = vec![
        TestJob::new(1, 0.0, gpus(1), 50),
        TestJob::new(2, 0.0, gpus(1), 1_000),
        TestJob::new(3, 1.0, gpus(2), 100),
    ];
    let outcomes = on(2, "srtf-oracle", jobs);
    assert_eq!((outcomes[&2].2, outcomes[&3].0), (2, 50));
}

#[test]
fn a_higher_priority_preempts_a_lower_one() {
    let jobs = vec![TestJob::new(1, 0.0, gpus(1), 10), urgent(TestJob::new(2, 1.0, gpus(1), 1_000))];
    assert_eq!(on(1, "srtf-oracle", jobs), BTreeMap::from([(1, (0, 1_010, 2)), (2, (1, 1_001, 1))]));
}

/// The job that a policy starts on one device at second 1, and what it plans when another one arrives.
fn plan_for_second(text: &str, first: TestJob, second: TestJob) -> (JobId, Plan) {
    let mut policy = policy(text);
    let mut view = view(vec![node(1, &[1_000])], vec![first.pending]);
    policy.learn(&view, &view.as_changes());
    let Action::Place { job, placement, .. } = policy.plan(&view).actions.remove(0) else {
        panic!("a start")
    };
    let running = view.pending[&job].clone().placed(placement, view.now);
    let full = node(1, &[0]);
    let changes = [ViewChange::Running(running), ViewChange::Node(full), ViewChange::Pending(second.pending)];
    view.apply(&changes);
    policy.learn(&view, &changes);
    (job, policy.plan(&view))
}

/// The reason given to a job that runs alone on one device when this one arrives.
fn explain(first: TestJob, second: TestJob) -> String {
    let (job, plan) = plan_for_second("srtf-oracle", first, second);
    match &plan.actions[..] {
        [Action::Preempt { job: stopped, why }] if *stopped == job => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reason_of_a_preemption_names_the_job() {
    let job = |number, iterations| TestJob::new(number, 0.0, gpus(1), iterations);
    assert_eq!(explain(job(1, 100), job(2, 10)), "makes room for job 2, which has less time left to run");
    let why = explain(job(1, 10), urgent(job(2, 100)));
    assert_eq!(why, "makes room for job 2, which has a higher priority");
}

#[test]
fn resources_that_are_being_freed_are_kept_for_the_job() {
    let mut cluster = TestCluster::new(
        vec![node(1, &[1_000, 1_000])],
        vec![
            TestJob::new(1, 0.0, gpus(1), 1_000),
            TestJob::new(2, 1.0, gpus(2), 50),
            // It would fit the device that is free already, and is less urgent.
            TestJob::new(3, 1.0, gpus(1), 60),
        ],
        Box::new(FirstFit),
    );
    cluster.stopping_takes = Span::from_secs(5);
    let outcomes = outcomes(&cluster.run(policy("srtf-oracle").as_mut()));
    assert_eq!((outcomes[&2].0, outcomes[&3].0, outcomes[&1].2), (6, 56, 2));
}

#[test]
fn service_counts_over_all_attempts() {
    let jobs = vec![
        TestJob::new(1, 0.0, gpus(1), 200),
        urgent(TestJob::new(2, 20.0, gpus(1), 10)),
        TestJob::new(3, 40.0, gpus(1), 10),
    ];
    // 20 seconds before it was stopped, and 16 after.
    assert_eq!(on(1, LAS, jobs)[&3].0, 46);
}

/// One device under the textbook's preemptive rule: the least possible sum of completion times.
fn least_sum(jobs: &[(u64, u64)]) -> u64 {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.1).collect();
    let (mut now, mut sum) = (0, 0);
    while left.iter().any(|left| *left > 0) {
        let here = (0..jobs.len()).filter(|job| left[*job] > 0 && jobs[*job].0 <= now);
        if let Some(job) = here.min_by_key(|job| (left[*job], jobs[*job].0)) {
            left[job] -= 1;
            sum += if left[job] == 0 { now + 1 } else { 0 };
        }
        now += 1;
    }
    sum
}

fn random_jobs() -> impl Strategy<Value = Vec<TestJob>> {
    let demands = prop_oneof![
        (1_u32..5).prop_map(gpus),
        (1_u32..9).prop_map(anywhere),
        (100_u32..900).prop_map(part),
        Just(gpus(0)),
    ];
    let job = (0_u64..60, demands, 1_u64..80, 0.3_f64..3.0, 0_i32..3);
    prop::collection::vec(job, 1..30).prop_map(|drawn| {
        let job = |(number, (at, demand, iterations, error, priority)): (u64, (u64, _, u64, f64, i32))| {
            let expected = (iterations as f64 * error).ceil() as u64;
            let mut job = TestJob::new(number, at as f64, demand, iterations).expected(expected);
            job.pending.priority = priority;
            job
        };
        (1..).zip(drawn).map(job).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn on_one_device_srtf_is_optimal(drawn in prop::collection::vec((0_u64..50, 1_u64..30), 1..15)) {
        let job = |(number, it): (u64, &(u64, u64))| TestJob::new(number, it.0 as f64, gpus(1), it.1);
        let outcomes = on(1, "srtf-oracle", (1..).zip(&drawn).map(job).collect());
        prop_assert_eq!(outcomes.values().map(|it| it.1).sum::<u64>(), least_sum(&drawn));
        // A job is stopped only when a shorter one arrives.
        prop_assert!(outcomes.values().map(|it| it.2 as usize - 1).sum::<usize>() < drawn.len());
    }

    #[test]
    fn every_policy_ends_every_job_whatever_was_expected(jobs in random_jobs(), stopping in 0_u64..10) {
        for name in POLICY_NAMES.into_iter().chain([LAS]) {
            let nodes = vec![node(1, &[1_000; 4]), node(2, &[1_000; 4])];
            let mut cluster = TestCluster::new(nodes, jobs.clone(), Box::new(FirstFit));
            cluster.stopping_takes = Span::from_secs(stopping);
            let mut ended: Vec<JobId> = cluster.run(policy(name).as_mut()).iter().map(|it| it.job).collect();
            ended.sort_unstable();
            let all: Vec<JobId> = jobs.iter().map(|job| job.pending.id).collect();
            prop_assert_eq!(ended, all, "{}", name);
        }
    }
}

#[test]
fn a_new_policy_stops_no_job_of_a_higher_priority_that_ran_before_it_existed() {
    let mut policy = policy("srtf-oracle");
    let first = urgent(TestJob::new(1, 0.0, gpus(1), 1_000)).pending;
    let device = node(1, &[1_000]).devices[0].id.clone();
    let part = RankPlacement {
        node: node(1, &[]).id,
        devices: vec![device],
        share: Share::WHOLE,
        ranks: vec![],
        host: None,
    };
    let (id, started_at) = (first.id, first.submitted_at);
    let running = first.placed(Placement { parts: vec![part] }, started_at);
    let shorter = TestJob::new(2, 1.0, gpus(1), 1).pending;
    let mut view = view(vec![node(1, &[0])], vec![shorter]);
    view.running.insert(id, running);
    policy.learn(&view, &view.as_changes());
    assert_eq!(policy.plan(&view).actions, []);
}
