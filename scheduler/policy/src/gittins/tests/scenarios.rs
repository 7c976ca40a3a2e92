//! Who goes first, who is stopped for whom and where, and who never is.

use cohabit_types::{DeviceId, Placement, Span, Time};
use proptest::prelude::*;

use super::kit::{job, named, nodes, of, policy, preemptible};
use crate::tests::cluster::{Ran, TestCluster, TestJob, run};
use crate::tests::kit::{anywhere, gpus, node};
use crate::{Action, FirstFit, RunningJob, View, ViewChange};

/// Start, end, and number of attempts.
pub(super) fn times(ran: &[Ran], number: u64) -> (u64, u64, u32) {
    let it = of(ran, number);
    (it.started_at.as_micros() / 1_000_000, it.ended_at.as_micros() / 1_000_000, it.attempts)
}

#[test]
fn a_new_job_takes_the_place_of_one_that_has_run_for_long_and_may_be_stopped() {
    let jobs = || vec![preemptible(job(1, 0.0, gpus(1), 10_000)), job(2, 2_000.0, gpus(1), 100)];
    let ran = run(policy("a-srpt").as_mut(), nodes(1, 1), jobs());
    assert_eq!((times(&ran, 1), times(&ran, 2)), ((0, 10_100, 2), (2_000, 2_100, 1)));
    let off = run(policy("a-srpt:preempt=off").as_mut(), nodes(1, 1), jobs());
    assert_eq!(times(&off, 2), (10_000, 10_100, 1));
}

#[test]
fn a_job_that_did_not_agree_is_never_stopped() {
    let jobs = vec![job(1, 0.0, gpus(1), 10_000), preemptible(job(2, 2_000.0, gpus(1), 100))];
    let ran = run(policy("a-srpt").as_mut(), nodes(1, 1), jobs);
    assert_eq!(times(&ran, 1), (0, 10_000, 1));
}

#[test]
fn no_job_is_stopped_before_its_quantum_ends() {
    let jobs = || vec![preemptible(job(1, 0.0, gpus(1), 10_000)), job(2, 100.0, gpus(1), 100)];
    let started = |text| times(&run(policy(text).as_mut(), nodes(1, 1), jobs()), 2).0;
    let default = started("a-srpt");
    assert!((600..=1_200).contains(&default), "{default}");
    let longer = started("a-srpt:quantum=5000");
    assert!((5_000..=5_300).contains(&longer), "{longer}");
}

#[test]
fn a_higher_priority_takes_the_place_whatever_the_ranks_and_a_lower_one_never_does() {
    let arrives = |priority| {
        let mut second = job(2, 2_000.0, gpus(1), 100);
        second.pending.priority = priority;
        let jobs = vec![preemptible(job(1, 0.0, gpus(1), 10_000)), second];
        times(&run(policy("a-srpt:margin=1000000").as_mut(), nodes(1, 1), jobs), 2).0
    };
    assert_eq!((arrives(1), arrives(0)), (2_000, 10_000));
    let mut second = job(2, 2_000.0, gpus(1), 100);
    second.pending.priority = -1;
    let jobs = vec![preemptible(job(1, 0.0, gpus(1), 10_000)), second];
    assert_eq!(times(&run(policy("a-srpt").as_mut(), nodes(1, 1), jobs), 2).0, 10_000);
}

#[test]
fn a_gang_takes_the_places_of_one_node() {
    let mut jobs: Vec<TestJob> =
        (1..=4).map(|number| preemptible(job(number, number as f64, gpus(1), 20_000))).collect();
    jobs.push(job(5, 5_000.0, anywhere(2), 100));
    let mut cluster = TestCluster::new(nodes(2, 2), jobs, Box::new(FirstFit));
    cluster.stopping_takes = Span::from_secs(15);
    let ran = cluster.run(policy("a-srpt").as_mut());
    assert_eq!(times(&ran, 5), (5_015, 5_115, 1));
    assert_eq!(of(&ran, 5).placement.parts.len(), 1, "its devices are on one node");
    let stopped = (1..=4).filter(|number| of(&ran, *number).attempts == 2).count();
    assert_eq!(stopped, 2, "nobody is stopped in vain");
}

#[test]
fn jobs_like_short_ones_go_before_jobs_like_long_ones() {
    // One of each kind ends first; then one of each waits behind a third.
    let jobs = vec![
        named(job(1, 0.0, gpus(1), 5_000), "long"),
        named(job(2, 1.0, gpus(1), 10), "short"),
        job(3, 5_500.0, gpus(1), 1_000),
        named(job(4, 8_000.0, gpus(1), 5_000), "long"),
        job(5, 8_100.0, gpus(1), 1_000),
        named(job(6, 8_200.0, gpus(1), 5_000), "long"),
        named(job(7, 8_300.0, gpus(1), 10), "short"),
    ];
    let ran = run(policy("a-srpt").as_mut(), nodes(1, 1), jobs);
    assert!(times(&ran, 7).0 < times(&ran, 6).0 && times(&ran, 7).0 < times(&ran, 5).0);
    assert!(of(&ran, 7).why.contains("from 1 job like it"), "{}", of(&ran, 7).why);
}

#[test]
fn a_job_that_waited_too_long_goes_first_and_is_not_stopped() {
    // Short jobs of one kind arrive without end; the long one is never the most urgent.
    let mut jobs = vec![named(job(1, 0.0, gpus(1), 5_000), "long")];
    jobs.push(named(job(2, 10.0, gpus(1), 5_000), "long"));
    jobs.extend((3..400).map(|number| named(job(number, number as f64 * 90.0, gpus(1), 100), "short")));
    let starved = run(policy("a-srpt:lane=0").as_mut(), nodes(1, 1), jobs.clone());
    let lane = "a-srpt:lane=1,patience=1,patience-base=1000";
    let served = run(policy(lane).as_mut(), nodes(1, 1), jobs);
    assert!(times(&served, 2).0 < times(&starved, 2).0, "{:?}", (times(&served, 2), times(&starved, 2)));
    assert!(of(&served, 2).why.contains("waited too long"), "{}", of(&served, 2).why);
}

/// A job that runs since second 0 and says at `now` that it ends 10 s later.
fn nearly_done(job: &TestJob, now: u64) -> ViewChange {
    let at = Time::EPOCH + Span::from_secs(now);
    let placement = Placement { parts: vec![node(1, &[1_000]).part(&job.pending.demand, first_device())] };
    let running = job.pending.clone().placed(placement, Time::EPOCH);
    ViewChange::Running(RunningJob { reported_end: Some(at + Span::from_secs(10)), ..running })
}

fn first_device() -> Vec<DeviceId> {
    vec![node(1, &[1_000]).devices[0].id.clone()]
}

#[test]
fn a_job_that_moves_its_end_away_for_ever_is_not_believed_for_ever() {
    let long = preemptible(job(1, 0.0, gpus(1), 100_000));
    let newcomer = |number, at| job(number, at as f64, gpus(1), 100).pending;
    let stops_at = |now: u64| {
        let mut policy = policy("a-srpt:quantum=0,stop-ratio=0");
        let mut view = View { nodes: vec![node(1, &[0])], ..View::default() };
        policy.learn(&view, &view.as_changes());
        for seconds in (0..=now).step_by(100) {
            view.now = Time::EPOCH + Span::from_secs(seconds);
            let change = [nearly_done(&long, seconds)];
            view.apply(&change);
            policy.learn(&view, &change);
        }
        let arrives = [ViewChange::Pending(newcomer(2, now))];
        view.apply(&arrives);
        policy.learn(&view, &arrives);
        policy.plan(&view).actions.iter().any(|action| matches!(action, Action::Preempt { .. }))
    };
    assert!(!stops_at(200), "within its first report");
    assert!(stops_at(5_000), "far beyond twice its first report of 110 s");
}

#[test]
fn the_lane_does_not_start_all_that_waited_too_long_at_once() {
    // A lane of a tenth of ten devices, and twenty jobs that are overdue at once behind a long one.
    let mut jobs = vec![job(1, 0.0, anywhere(10), 4_000)];
    jobs.extend((2..22).map(|number| named(job(number, 1.0, gpus(1), 5_000), "long")));
    let policy_text = "a-srpt:lane=0.1,patience=0,drain=0";
    let ran = run(policy(policy_text).as_mut(), nodes(1, 10), jobs);
    let in_lane = |it: &&Ran| it.why.contains("waited too long");
    let first = (2..22).map(|number| of(&ran, number)).filter(in_lane).map(|it| it.started_at).min().unwrap();
    let at_first = ran.iter().filter(in_lane).filter(|it| it.started_at == first).count();
    assert!(at_first < 10, "{at_first} of ten devices were taken by the lane at once");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn without_stops_jobs_of_one_batch_run_first_come_first_served(
        seconds in prop::collection::vec(1_u64..500, 1..30),
    ) {
        let jobs = || -> Vec<TestJob> {
            let each = seconds.iter().enumerate();
            each.map(|(at, seconds)| named(job(at as u64 + 1, at as f64, gpus(1), *seconds), "one")).collect()
        };
        let started = |text| {
            let ran = run(policy(text).as_mut(), nodes(1, 2), jobs());
            (1..=seconds.len() as u64).map(|number| times(&ran, number).0).collect::<Vec<_>>()
        };
        prop_assert_eq!(started("a-srpt:preempt=off"), started("fifo-greedy"));
    }

    #[test]
    fn every_job_ends_and_none_that_did_not_agree_is_stopped(
        jobs in prop::collection::vec((0_u64..20_000, 1_u32..5, 1_u64..5_000, any::<bool>()), 1..25),
    ) {
        let jobs: Vec<TestJob> = jobs
            .into_iter()
            .enumerate()
            .map(|(at, (arrives, devices, seconds, may_stop))| {
                let demand = if devices > 2 { anywhere(devices) } else { gpus(devices) };
                let it = job(at as u64 + 1, arrives as f64, demand, seconds);
                if may_stop { preemptible(it) } else { it }
            })
            .collect();
        let agreed: Vec<bool> = jobs.iter().map(|it| it.pending.traits.preemptible).collect();
        let count = jobs.len();
        let mut cluster = TestCluster::new(nodes(2, 2), jobs, Box::new(FirstFit));
        cluster.stopping_takes = Span::from_secs(5);
        let ran = cluster.run(policy("a-srpt").as_mut());
        prop_assert_eq!(ran.len(), count);
        for it in ran {
            prop_assert!(agreed[it.job.number as usize - 1] || it.attempts == 1);
        }
    }
}
