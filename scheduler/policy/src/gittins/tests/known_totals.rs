//! Jobs whose work time is known from the start: the order is that of the shortest remaining time.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Span};
use proptest::prelude::*;

use super::kit::{job, nodes, order, policy, preemptible, seconds, tell_totals, totals, watched};
use crate::gittins::GittinsOrder;
use crate::tests::cluster::{Ran, TestCluster, TestJob, run};
use crate::tests::kit::gpus;
use crate::{FirstFit, View};

/// All arrivals and lengths are multiples of this, so that the assumed cost of a stop decides nothing.
const UNIT: u64 = 1_000;

/// Stops cost nothing, wait for nothing, and no job is ever preferred for having waited.
const FREE_STOPS: &str = "quantum=0,stop-ratio=0,margin=0,lane=0,drain=0";

/// The least sum of completion times on one device, in units, of all schedules that may stop jobs: at each
/// unit any job goes on that has arrived.
fn least_sum(
    now: u64,
    jobs: &[(u64, u64)],
    left: Vec<u64>,
    known: &mut BTreeMap<(u64, Vec<u64>), u64>,
) -> u64 {
    if left.iter().all(|left| *left == 0) {
        return 0;
    }
    if let Some(sum) = known.get(&(now, left.clone())) {
        return *sum;
    }
    let ready: Vec<usize> = (0..jobs.len()).filter(|job| left[*job] > 0 && jobs[*job].0 <= now).collect();
    let after = |job: &usize, known: &mut BTreeMap<(u64, Vec<u64>), u64>| {
        let mut left = left.clone();
        left[*job] -= 1;
        let completes = if left[*job] == 0 { now + 1 - jobs[*job].0 } else { 0 };
        completes + least_sum(now + 1, jobs, left, known)
    };
    let sum = match ready.iter().map(|job| after(job, known)).min() {
        Some(sum) => sum,
        None => least_sum(now + 1, jobs, left.clone(), known),
    };
    known.insert((now, left), sum);
    sum
}

fn test_jobs(jobs: &[(u64, u64)]) -> Vec<TestJob> {
    let each = jobs.iter().zip(1..);
    each.map(|((arrives, length), number)| {
        preemptible(job(number, (arrives * UNIT) as f64, gpus(1), length * UNIT))
    })
    .collect()
}

/// Checks that the typical rest of each job is what it has left.
fn check_rests(view: &View, order: &GittinsOrder<FirstFit>, totals: &BTreeMap<JobId, f64>) {
    for entry in order.state.running.iter() {
        let age = view.now.since(entry.started_at).as_secs_f64() + entry.job.worked();
        close(entry.rank.rest.typical, totals[&entry.job.id] - age);
    }
    for (id, pending) in &view.pending {
        let rank = order.state.waiting.entry_of(*id).unwrap().rank;
        close(rank.rest.typical, totals[id] - pending.attained.worked.as_secs_f64());
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-3, "{found} instead of {expected}");
}

/// Runs jobs of which the order knows the work times, and checks that it knows their rests exactly.
fn run_with_totals(options: &str, devices: usize, jobs: Vec<TestJob>) -> Vec<Ran> {
    let known = totals(&jobs);
    let mut watched = watched(
        order(options, FirstFit),
        |order, _, changes| tell_totals(order, changes, &known),
        |view, _, order| check_rests(view, order, &known),
    );
    TestCluster::new(nodes(1, devices), jobs, Box::new(FirstFit)).run(&mut watched)
}

fn sum_of_completions(ran: &[Ran]) -> u64 {
    ran.iter().map(|it| (seconds(it.ended_at) - seconds(it.arrived_at)).round() as u64).sum()
}

#[test]
fn the_brute_force_finds_the_schedule_of_the_shortest_remaining_time() {
    // The long job is stopped once: it ends at 5 instead of 3, the short ones at 2 and 3.
    let jobs = [(0, 3), (1, 1), (2, 1)];
    let lengths = jobs.iter().map(|(_, length)| *length).collect();
    assert_eq!(least_sum(0, &jobs, lengths, &mut BTreeMap::new()), 5 + 1 + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn with_known_totals_and_free_stops_the_sum_of_completion_times_is_the_least(
        jobs in prop::collection::vec((0_u64..7, 1_u64..6), 1..6),
    ) {
        let lengths = jobs.iter().map(|(_, length)| *length).collect();
        let least = least_sum(0, &jobs, lengths, &mut BTreeMap::new());
        let ran = run_with_totals(FREE_STOPS, 1, test_jobs(&jobs));
        prop_assert_eq!(ran.len(), jobs.len());
        prop_assert_eq!(sum_of_completions(&ran), least * UNIT);
    }

    #[test]
    fn without_stops_and_with_equal_typical_rests_the_order_is_first_come_first_served(
        jobs in prop::collection::vec((0_u64..3_000, 1_u64..2_000), 1..25), devices in 1_usize..4,
    ) {
        // Jobs of different users, about which nothing but a common total is believed.
        let jobs = || -> Vec<TestJob> {
            let arrivals: BTreeSet<u64> = jobs.iter().map(|(arrives, _)| *arrives).collect();
            let all = arrivals.into_iter().zip(&jobs).zip(1..);
            let each = all.map(|((arrives, (_, length)), number)| (number, arrives as f64, *length));
            each.map(|(number, arrives, length)| job(number, arrives, gpus(1), length)).collect()
        };
        let started = |mut ran: Vec<Ran>| {
            ran.sort_by_key(|it| it.job);
            ran.into_iter().map(|it| it.started_at).collect::<Vec<_>>()
        };
        let equal = totals(&jobs()).into_keys().map(|id| (id, 777.0)).collect();
        let mut watched = watched(
            order("preempt=off,lane=0", FirstFit),
            |order, _, changes| tell_totals(order, changes, &equal),
            |_, _, _| {},
        );
        let mut cluster = TestCluster::new(nodes(1, devices), jobs(), Box::new(FirstFit));
        cluster.stopping_takes = Span::ZERO;
        let robust = cluster.run(&mut watched);
        let greedy = run(policy("fifo-greedy").as_mut(), nodes(1, devices), jobs());
        prop_assert_eq!(started(robust), started(greedy));
    }
}
